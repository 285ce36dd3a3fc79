// y = (e4m3(x) * sx) * (e4m3(W) * sw)^T + bias: per tensor or per token activations, weights per tensor or per channel.
// Codes are multiplied, the scales come last.
#include "kernel/cpu/emulation.h"
#include "kernel/cpu/kernels.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_emulation("cpu_fp8_w8a8_emulation", ActivationUse::as_checkpoint);
  kernel.families = {Family::fp8_w8a8};
  kernel.contract.weight_formats = {Format::e4m3, Format::e5m2};
  kernel.contract.storages = {Storage::dense};
  kernel.contract.activation_formats = {Format::e4m3};
  return kernel;
}

}  // namespace

const Kernel cpu_fp8_w8a8_emulation = make();

}  // namespace gearshift
