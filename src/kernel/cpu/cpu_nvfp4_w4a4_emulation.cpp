// y = (e2m1(x) * Sx) * (e2m1(W) * Sw)^T / (gx * gw) + bias: code times e4m3 scale is exact in fp32 on both sides; the
// two tensor-wide scales come last, per part.
#include "kernel/cpu/emulation.h"
#include "kernel/cpu/kernels.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_emulation("cpu_nvfp4_w4a4_emulation", ActivationUse::as_checkpoint);
  kernel.families = {Family::nvfp4_w4a4};
  kernel.contract.weight_formats = {Format::e2m1};
  kernel.contract.storages = {Storage::nibbles};
  kernel.contract.scale_dtypes = {DType::f8_e4m3};
  kernel.contract.activation_formats = {Format::e2m1};
  return kernel;
}

}  // namespace

const Kernel cpu_nvfp4_w4a4_emulation = make();

}  // namespace gearshift
