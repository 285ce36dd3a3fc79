// y = x * (e2m1(W) * Sw)^T / gw + bias: NVFP4 weights with activations as they come; the tensor-wide scale comes last,
// per part, so that sums may exceed the output type before it. Also what a W4A4 checkpoint runs through when its
// activations are not to be rounded.
#include "kernel/cpu/emulation.h"
#include "kernel/cpu/kernels.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_emulation("cpu_nvfp4_w4a16_emulation", ActivationUse::float16);
  kernel.families = {Family::nvfp4_w4a16, Family::nvfp4_w4a4};
  kernel.contract.weight_formats = {Format::e2m1};
  kernel.contract.storages = {Storage::nibbles};
  kernel.contract.scale_dtypes = {DType::f8_e4m3};
  return kernel;
}

}  // namespace

const Kernel cpu_nvfp4_w4a16_emulation = make();

}  // namespace gearshift
