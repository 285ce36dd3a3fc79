// y = (int8(x) * int8(W)^T) * sx * sw + bias: cuBLASLt multiplies codes by codes, int32 sums are exact.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/library_w8a8.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_code_product("sm80_int8_w8a8_cublaslt", CodeProduct::int8);
  kernel.families = {Family::int8_w8a8};
  kernel.contract.groupings = {Grouping::Kind::tensor, Grouping::Kind::row};
  kernel.contract.activation_granularities = {Granularity::tensor, Granularity::token};
  kernel.formula = "y = (int8(x) . int8(W)) * sx * sw + bias, cuBLASLt, int32 sums";
  return kernel;
}

}  // namespace

const Kernel sm80_int8_w8a8_cublaslt = make();

}  // namespace gearshift
