// y = sum over groups of (quantize(x) . (q - z)) * s, times sx, + bias, for 1 to 16 tokens: codes of x and differences
// of codes and zero points are exact in bf16, fp32 sums per group are multiplied by the scale as stored.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/stream.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/int4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_stream("sm80_int4_w4a8_stream", ActivationUse::as_checkpoint, int4_rows16_mma);
  kernel.families = {Family::w4a8};
  take_int4_weights(kernel.contract);
  kernel.contract.scale_dtypes = {DType::bf16, DType::f16};
  kernel.contract.k.multiple = 16;
  kernel.contract.activation_granularities = {Granularity::tensor, Granularity::token};
  kernel.formula = "y = sum_g s_g (quantize(x) . (q - z))_g * sx + bias, bf16 tensor cores, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm80_int4_w4a8_stream = make();

}  // namespace gearshift
