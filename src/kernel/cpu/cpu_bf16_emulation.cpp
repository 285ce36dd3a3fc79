// y = x * W^T + bias for float weights (bf16, fp16, fp32), widened to fp32 panel by panel.
#include "kernel/cpu/emulation.h"
#include "kernel/cpu/kernels.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_emulation("cpu_bf16_emulation", ActivationUse::as_checkpoint);
  kernel.families = {Family::bf16};
  kernel.contract.weight_formats = {Format::float_};
  kernel.contract.storages = {Storage::dense, Storage::dense_transposed};
  kernel.contract.weight_dtypes = {DType::f32, DType::f16, DType::bf16};
  return kernel;
}

}  // namespace

const Kernel cpu_bf16_emulation = make();

}  // namespace gearshift
