// y = x * ((q - z) * s)^T + bias for 4-bit integers in groups; the product with the scale is rounded to the operand.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/int4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_int4_w4a16_emulation", ActivationUse::as_checkpoint, int4_rows16_mma);
  kernel.families = {Family::mixed_precision};
  take_int4_weights(kernel.contract);
  kernel.contract.scale_dtypes = {DType::bf16, DType::f16};
  kernel.contract.k.multiple = 16;
  kernel.contract.pre_scale = kernel.contract.partial_groups = false;
  kernel.bound_product = kRoundedOperand;
  return kernel;
}

}  // namespace

const Kernel sm80_int4_w4a16_emulation = make();

}  // namespace gearshift
