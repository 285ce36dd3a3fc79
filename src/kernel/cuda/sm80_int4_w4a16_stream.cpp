// y = sum over groups of ((q - z) . x) * s, + bias, for 1 to 16 tokens: differences of codes and zero points are exact
// integers in bf16 and fp16, their fp32 sums per group are multiplied by the scale as stored (stage/stream.cuh).
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/stream.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/int4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_stream("sm80_int4_w4a16_stream", ActivationUse::as_checkpoint, int4_rows16_mma);
  kernel.families = {Family::mixed_precision};
  take_int4_weights(kernel.contract);
  kernel.contract.scale_dtypes = {DType::bf16, DType::f16};
  kernel.contract.k.multiple = 16;
  // fp16 activations: for groups of 128 and more only.
  ConditionalContract fp16;
  fp16.when.dtypes = {DType::f16};
  fp16.contract.group_multiple = 128;
  kernel.contract.where = {fp16};
  kernel.formula = "y = sum_g s_g (x . (q - z))_g + bias, 16-bit tensor cores, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm80_int4_w4a16_stream = make();

}  // namespace gearshift
