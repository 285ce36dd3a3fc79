// y = quantize(x) * ((q - z) * s)^T * sx + bias for many tokens, weights decoded in registers (stage/prefill.cuh). Codes
// of x are exact in bf16, and so are differences of codes and zero points; their product with the scale is rounded once.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/int4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill("sm90_int4_w4a8_prefill", ActivationUse::as_checkpoint, int4_rows16_mma);
  kernel.families = {Family::w4a8};
  take_int4_weights(kernel.contract);
  kernel.contract.scale_dtypes = {DType::bf16, DType::f16};
  kernel.contract.k.multiple = 16;
  kernel.contract.activation_granularities = {Granularity::tensor, Granularity::token};
  kernel.bound_product = 2.01 * kRoundedOperand;
  kernel.formula = "y = quantize(x) . ((q - z) * s) * sx + bias, bf16 warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_int4_w4a8_prefill = make();

}  // namespace gearshift
