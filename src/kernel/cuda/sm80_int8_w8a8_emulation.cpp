// y = (int8(x) * int8(W)^T) * sx * sw + bias: codes and their distance to the zero point enter the product, scales come
// last. Codes of rows whose zero point lies far outside are rounded to the operand.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_int8_w8a8_emulation", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::int8_w8a8};
  kernel.contract.weight_formats = {Format::int8};
  kernel.bound_product = kRoundedOperand;
  return kernel;
}

}  // namespace

const Kernel sm80_int8_w8a8_emulation = make();

}  // namespace gearshift
