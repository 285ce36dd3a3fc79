// y = x * W^T + bias for float weights (bf16, fp16, fp32); what 16-bit activations meet is rounded to their type or to
// TF32.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_bf16_emulation", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::bf16};
  kernel.contract.weight_formats = {Format::float_};
  kernel.bound_product = kRoundedOperand;
  return kernel;
}

}  // namespace

const Kernel sm80_bf16_emulation = make();

}  // namespace gearshift
