// y = sum over 128 columns of (e4m3(x) . e4m3(W)) * sx * sw, + bias: scales of 1 x 128 and 128 x 128 inside the
// product, which takes four rows and more.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/library_w8a8.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_code_product("sm90_fp8_block_w8a8_cublaslt", CodeProduct::e4m3_block);
  kernel.families = {Family::fp8_block_w8a8};
  kernel.contract.archs = {"sm_90"};  // the only devices of which cuBLASLt takes such scales
  kernel.contract.groupings = {Grouping::Kind::block};
  kernel.contract.groups = {128};
  kernel.contract.group_rows = {128, 128};
  kernel.contract.activation_groups = {128};
  kernel.contract.activation_granularities = {Granularity::token_group};
  kernel.formula = "y = sum_b sx_b sw_b (e4m3(x) . e4m3(W))_b + bias, cuBLASLt";
  return kernel;
}

}  // namespace

const Kernel sm90_fp8_block_w8a8_cublaslt = make();

}  // namespace gearshift
