// y = (e4m3(x) * sx) * (e4m3(W) * sw)^T + bias with scales per 1 x 128 and per block, both rounded into the operands.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_fp8_block_w8a8_emulation", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::fp8_block_w8a8};
  kernel.contract.weight_formats = {Format::e4m3};
  kernel.bound_product = 2.01 * kRoundedOperand;
  return kernel;
}

}  // namespace

const Kernel sm80_fp8_block_w8a8_emulation = make();

}  // namespace gearshift
