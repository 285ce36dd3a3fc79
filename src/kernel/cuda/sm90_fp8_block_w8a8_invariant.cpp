// sm90_fp8_block_w8a8_prefill with one tile and no shared columns for every M: a row has the same bits alone and in any
// batch.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill_rows("sm90_fp8_block_w8a8_invariant", CodeProduct::e4m3_block, true);
  kernel.families = {Family::fp8_block_w8a8};
  kernel.contract.groupings = {Grouping::Kind::block};
  kernel.contract.groups = {128};
  kernel.contract.activation_groups = {128};
  kernel.contract.activation_granularities = {Granularity::token_group};
  kernel.formula = "y = sum_b sx_b sw_b (e4m3(x) . e4m3(W))_b + bias, one order of sums for any M";
  return kernel;
}

}  // namespace

const Kernel sm90_fp8_block_w8a8_invariant = make();

}  // namespace gearshift
