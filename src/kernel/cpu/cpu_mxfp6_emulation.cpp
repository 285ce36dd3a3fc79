// y = mx(x) * (e2m3 or e3m2(W) * 2^e)^T + bias: four codes in three bytes, power-of-two scales per 32 columns.
#include "kernel/cpu/emulation.h"
#include "kernel/cpu/kernels.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_emulation("cpu_mxfp6_emulation", ActivationUse::as_checkpoint);
  kernel.families = {Family::mxfp6};
  kernel.contract.weight_formats = {Format::e2m3, Format::e3m2};
  kernel.contract.storages = {Storage::fp6_bytes, Storage::dense};
  kernel.contract.scale_dtypes = {DType::f8_e8m0};
  return kernel;
}

}  // namespace

const Kernel cpu_mxfp6_emulation = make();

}  // namespace gearshift
