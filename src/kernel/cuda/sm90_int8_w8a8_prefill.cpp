// y = (int8(x) * int8(W)^T) * sx * sw + bias for many tokens: warpgroup products of codes, exact int32 sums, scales in
// the same kernel (stage/prefill_products.cuh).
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill_rows("sm90_int8_w8a8_prefill", CodeProduct::int8);
  kernel.families = {Family::int8_w8a8};
  kernel.contract.groupings = {Grouping::Kind::tensor, Grouping::Kind::row};
  kernel.contract.activation_granularities = {Granularity::tensor, Granularity::token};
  kernel.formula = "y = (int8(x) . int8(W)) * sx * sw + bias, warpgroup products, int32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_int8_w8a8_prefill = make();

}  // namespace gearshift
