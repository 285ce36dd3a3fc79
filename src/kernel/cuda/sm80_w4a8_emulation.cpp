// y = quantize(x) * ((q - z) * s)^T * sx + bias: codes of x enter the product exactly, weights times their group's
// scale are rounded.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_w4a8_emulation", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::w4a8};
  kernel.bound_product = 2.01 * kRoundedOperand;
  return kernel;
}

}  // namespace

const Kernel sm80_w4a8_emulation = make();

}  // namespace gearshift
