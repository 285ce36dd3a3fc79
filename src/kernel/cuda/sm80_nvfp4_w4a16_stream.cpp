// y = x * (e2m1(W) * Sw)^T / gw + bias for 1 to 16 tokens; weights are decoded on their way from memory to the tensor
// cores (stage/stream.cuh), exactly: a code times its scale has six significant bits.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/stream.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/nvfp4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_stream("sm80_nvfp4_w4a16_stream", ActivationUse::float16, nvfp4_rows16_mma);
  kernel.families = {Family::nvfp4_w4a16, Family::nvfp4_w4a4};
  take_nvfp4_weights(kernel.contract);
  kernel.contract.k.multiple = 16;
  kernel.formula = "y = (x . W) * Sw / gw + bias, bf16 tensor cores, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm80_nvfp4_w4a16_stream = make();

}  // namespace gearshift
