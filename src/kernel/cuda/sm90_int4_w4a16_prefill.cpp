// y = x * ((q - z) * s)^T + bias for many tokens, weights decoded in registers (stage/prefill.cuh). The difference is
// exact in bf16; its product with the scale is rounded once to bf16, and so is a scale that is stored as fp16.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/int4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill("sm90_int4_w4a16_prefill", ActivationUse::as_checkpoint, int4_rows16_mma);
  kernel.families = {Family::mixed_precision};
  take_int4_weights(kernel.contract);
  kernel.contract.scale_dtypes = {DType::bf16, DType::f16};
  kernel.contract.k.multiple = 16;
  // fp16 activations: for groups of 128 and more, whose scales are fp16 as well.
  ConditionalContract fp16;
  fp16.when.dtypes = {DType::f16};
  fp16.contract.group_multiple = 128;
  fp16.contract.scale_dtypes = {DType::f16};
  kernel.contract.where = {fp16};
  kernel.bound_product = 2.01 * kRoundedOperand;
  kernel.formula = "y = x . ((q - z) * s) + bias, 16-bit warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_int4_w4a16_prefill = make();

}  // namespace gearshift
