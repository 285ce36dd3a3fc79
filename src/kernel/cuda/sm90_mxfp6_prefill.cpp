// y = quantize(x) * (fp6(W) * 2^Sw)^T + bias for many tokens, codes decoded in registers (stage/prefill.cuh). A code
// times its power of two is exact in bf16, and so are quantized activations, which are written back as bf16.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill("sm90_mxfp6_prefill", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::mxfp6};
  kernel.contract.weight_formats = {Format::e2m3, Format::e3m2};
  kernel.contract.scale_dtypes = {DType::f8_e8m0};
  kernel.contract.groups = {32};
  kernel.contract.where = {fp16_if_quantized({Format::e2m3, Format::e3m2})};
  kernel.formula = "y = (mxfp6(x) . fp6(W)) * 2^Sw + bias, bf16 warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_mxfp6_prefill = make();

}  // namespace gearshift
