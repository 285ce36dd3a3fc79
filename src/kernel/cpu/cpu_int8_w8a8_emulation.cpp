// y = ((qx - zx) * sx) * ((qw - zw) * sw)^T + bias: differences of integers are exact in fp32, scales of whole rows
// come last.
#include "kernel/cpu/emulation.h"
#include "kernel/cpu/kernels.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_emulation("cpu_int8_w8a8_emulation", ActivationUse::as_checkpoint);
  kernel.families = {Family::int8_w8a8};
  kernel.contract.activation_formats = {Format::int8};
  return kernel;
}

}  // namespace

const Kernel cpu_int8_w8a8_emulation = make();

}  // namespace gearshift
