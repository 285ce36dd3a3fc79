// y = quantize(x) * (e2m1(W) * 2^Sw)^T + bias for 1 to 16 tokens; weights are decoded on their way from memory to the
// tensor cores (stage/stream.cuh). Quantized activations are written back as bf16: every code times its power of two is
// exact.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/stream.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/mxfp4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_stream("sm80_mxfp4_stream", ActivationUse::as_checkpoint, mxfp4_rows16_mma);
  kernel.families = {Family::mxfp4};
  take_mxfp4_weights(kernel.contract);
  kernel.contract.k.multiple = 32;
  kernel.formula = "y = (quantize(x) . W) * 2^Sw + bias, bf16 tensor cores, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm80_mxfp4_stream = make();

}  // namespace gearshift
