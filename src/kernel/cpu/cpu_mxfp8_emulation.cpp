// y = mx(x) * (e4m3(W) * 2^e)^T + bias: power-of-two scales per 32 columns, exact in fp32. Activations as the
// checkpoint has them: MXFP8, or not quantized.
#include "kernel/cpu/emulation.h"
#include "kernel/cpu/kernels.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_emulation("cpu_mxfp8_emulation", ActivationUse::as_checkpoint);
  kernel.families = {Family::mxfp8};
  kernel.contract.weight_formats = {Format::e4m3, Format::e5m2};
  kernel.contract.storages = {Storage::dense};
  kernel.contract.scale_dtypes = {DType::f8_e8m0};
  return kernel;
}

}  // namespace

const Kernel cpu_mxfp8_emulation = make();

}  // namespace gearshift
