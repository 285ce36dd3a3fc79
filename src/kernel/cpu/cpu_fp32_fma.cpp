// y = x * W^T + bias for fp32 weights: fp32 products and sums.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/wide_engine.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_wide("cpu_fp32_fma");
  kernel.families = {Family::bf16};
  kernel.contract.weight_formats = {Format::float_};
  kernel.contract.storages = {Storage::dense, Storage::dense_transposed};
  kernel.contract.weight_dtypes = {DType::f32};
  kernel.formula = "y = x * W^T + bias, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_fp32_fma = make();

}  // namespace gearshift
