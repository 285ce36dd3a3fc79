// y = mx(x) * (e2m1(W) * 2^e)^T + bias: power-of-two scales per 32 columns, exact in fp32. Activations as the
// checkpoint has them: MXFP4, MXFP8, or not quantized (gpt-oss).
#include "kernel/cpu/emulation.h"
#include "kernel/cpu/kernels.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_emulation("cpu_mxfp4_emulation", ActivationUse::as_checkpoint);
  kernel.families = {Family::mxfp4};
  kernel.contract.weight_formats = {Format::e2m1};
  kernel.contract.storages = {Storage::nibbles};
  kernel.contract.scale_dtypes = {DType::f8_e8m0};
  return kernel;
}

}  // namespace

const Kernel cpu_mxfp4_emulation = make();

}  // namespace gearshift
