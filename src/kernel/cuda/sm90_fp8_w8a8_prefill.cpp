// y = (e4m3(x) * e4m3(W)^T) * sx * sw + bias for many tokens: warpgroup products of codes, whose sums move to fp32
// every 256 columns (stage/prefill_products.cuh).
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill_rows("sm90_fp8_w8a8_prefill", CodeProduct::e4m3);
  kernel.families = {Family::fp8_w8a8};
  kernel.contract.groupings = {Grouping::Kind::tensor, Grouping::Kind::row};
  kernel.contract.activation_granularities = {Granularity::tensor, Granularity::token};
  kernel.formula = "y = (e4m3(x) . e4m3(W)) * sx * sw + bias, warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_fp8_w8a8_prefill = make();

}  // namespace gearshift
