// y = x * (e2m1(W) * Sw)^T / gw + bias for many tokens: Hopper's warpgroup products on weights that are decoded in
// registers (stage/prefill.cuh). A code times its scale is exact in bf16 and fp16: at most six significant
// bits.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/nvfp4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill("sm90_nvfp4_w4a16_prefill", ActivationUse::float16, nvfp4_rows16_mma);
  kernel.families = {Family::nvfp4_w4a16, Family::nvfp4_w4a4};
  take_nvfp4_weights(kernel.contract);
  kernel.contract.k.multiple = 16;
  kernel.formula = "y = (x . W) * Sw / gw + bias, 16-bit warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_nvfp4_w4a16_prefill = make();

}  // namespace gearshift
