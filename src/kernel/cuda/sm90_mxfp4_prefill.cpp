// y = quantize(x) * (e2m1(W) * 2^Sw)^T + bias for many tokens, weights decoded in registers (stage/prefill.cuh).
// Quantized activations are written back as bf16: every code times its power of two is exact.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/mxfp4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill("sm90_mxfp4_prefill", ActivationUse::as_checkpoint, mxfp4_rows16_mma);
  kernel.families = {Family::mxfp4};
  take_mxfp4_weights(kernel.contract);
  kernel.contract.k.multiple = 32;
  kernel.contract.where = {fp16_if_quantized({Format::e2m1, Format::e4m3, Format::e5m2})};
  kernel.formula = "y = (quantize(x) . W) * 2^Sw + bias, bf16 warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_mxfp4_prefill = make();

}  // namespace gearshift
