// sm90_fp8_w8a8_prefill with one tile and no shared columns for every M: a row has the same bits alone and in any
// batch, where its own scale is not that of the whole batch.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill_rows("sm90_fp8_w8a8_invariant", CodeProduct::e4m3, true);
  kernel.families = {Family::fp8_w8a8};
  kernel.contract.groupings = {Grouping::Kind::tensor, Grouping::Kind::row};
  kernel.contract.activation_granularities = {Granularity::token};
  kernel.formula = "y = (e4m3(x) . e4m3(W)) * sx * sw + bias, one order of sums for any M";
  return kernel;
}

}  // namespace

const Kernel sm90_fp8_w8a8_invariant = make();

}  // namespace gearshift
