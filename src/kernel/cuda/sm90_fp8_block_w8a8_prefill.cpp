// y = sum over 128 columns of (e4m3(x) * e4m3(W)^T) * sx * sw, + bias for many tokens: warpgroup products of codes,
// whose sums move to fp32 with their scales (stage/prefill_products.cuh).
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill_rows("sm90_fp8_block_w8a8_prefill", CodeProduct::e4m3_block);
  kernel.families = {Family::fp8_block_w8a8};
  kernel.contract.groupings = {Grouping::Kind::block};
  kernel.contract.groups = {128};
  kernel.contract.activation_groups = {128};
  kernel.contract.activation_granularities = {Granularity::token_group};
  kernel.formula = "y = sum_b sx_b sw_b (e4m3(x) . e4m3(W))_b + bias, warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_fp8_block_w8a8_prefill = make();

}  // namespace gearshift
