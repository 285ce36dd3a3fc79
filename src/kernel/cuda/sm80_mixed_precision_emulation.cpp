// y = x * ((q - z) * s)^T + bias for integers of 2 to 8 bits, act-order and vectors multiplied onto x included.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_mixed_precision_emulation", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::mixed_precision};
  kernel.bound_product = 2.01 * kRoundedOperand;
  return kernel;
}

}  // namespace

const Kernel sm80_mixed_precision_emulation = make();

}  // namespace gearshift
