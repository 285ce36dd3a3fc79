// y = (e4m3(x) * e4m3(W)^T) * sx * sw + bias: cuBLASLt multiplies codes by codes.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/library_w8a8.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_code_product("sm89_fp8_w8a8_cublaslt", CodeProduct::e4m3);
  kernel.families = {Family::fp8_w8a8};
  kernel.contract.archs = {"sm_89", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"};
  kernel.contract.groupings = {Grouping::Kind::tensor, Grouping::Kind::row};
  kernel.contract.activation_granularities = {Granularity::tensor, Granularity::token};
  kernel.formula = "y = (e4m3(x) . e4m3(W)) * sx * sw + bias, cuBLASLt";
  return kernel;
}

}  // namespace

const Kernel sm89_fp8_w8a8_cublaslt = make();

}  // namespace gearshift
