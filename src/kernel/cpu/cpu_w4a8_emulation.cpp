// y = q8(x) * ((q - z) * s)^T + bias: 4-bit weights, 8-bit activations (FP8 or INT8, per tensor, token or group).
#include "kernel/cpu/emulation.h"
#include "kernel/cpu/kernels.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_emulation("cpu_w4a8_emulation", ActivationUse::as_checkpoint);
  kernel.families = {Family::w4a8};
  kernel.contract.activation_formats = {Format::e4m3, Format::int8};
  return kernel;
}

}  // namespace

const Kernel cpu_w4a8_emulation = make();

}  // namespace gearshift
