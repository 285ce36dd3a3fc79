// y = x * W^T + bias for bf16, fp16 and fp32 weights: fp32 products and sums, or dots of bf16 pairs where both sides
// are bf16 and the processor has them.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/wide_engine.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_wide("cpu_bf16_fma");
  kernel.families = {Family::bf16};
  kernel.contract.weight_formats = {Format::float_};
  kernel.contract.storages = {Storage::dense, Storage::dense_transposed};
  kernel.contract.weight_dtypes = {DType::bf16, DType::f16, DType::f32};
  kernel.formula = "y = x * W^T + bias, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_bf16_fma = make();

}  // namespace gearshift
