// y = quantize(x) * ((q - z) * s)^T * sx + bias from the layout of the streaming kernel: codes of x enter the product
// exactly, weights times their group's scale are rounded.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/int4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_int4_w4a8_emulation", ActivationUse::as_checkpoint, int4_rows16_mma);
  kernel.families = {Family::w4a8};
  take_int4_weights(kernel.contract);
  kernel.contract.scale_dtypes = {DType::bf16, DType::f16};
  kernel.contract.k.multiple = 16;
  kernel.contract.pre_scale = kernel.contract.partial_groups = false;
  kernel.contract.activation_granularities = {Granularity::tensor, Granularity::token};
  kernel.bound_product = kRoundedOperand;
  return kernel;
}

}  // namespace

const Kernel sm80_int4_w4a8_emulation = make();

}  // namespace gearshift
