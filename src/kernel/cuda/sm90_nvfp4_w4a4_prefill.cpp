// y = (e2m1(x) * Sx) * (e2m1(W) * Sw)^T / (gx * gw) + bias for many tokens: x is quantized and written back as bf16,
// which is exact, and meets weights that are decoded in registers (stage/prefill.cuh).
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/nvfp4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill("sm90_nvfp4_w4a4_prefill", ActivationUse::as_checkpoint, nvfp4_rows16_mma);
  kernel.families = {Family::nvfp4_w4a4};
  take_nvfp4_weights(kernel.contract);
  kernel.contract.activation_formats = {Format::e2m1};
  kernel.contract.k.multiple = 16;
  kernel.formula = "y = (nvfp4(x) . W) * Sw / (gx * gw) + bias, bf16 warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_nvfp4_w4a4_prefill = make();

}  // namespace gearshift
