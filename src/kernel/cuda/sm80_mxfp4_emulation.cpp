// y = quantize(x) * (e2m1(W) * 2^Sw)^T + bias: powers of two are exact in bf16 and in fp32.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/mxfp4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_mxfp4_emulation", ActivationUse::as_checkpoint, mxfp4_rows16_mma);
  kernel.families = {Family::mxfp4};
  take_mxfp4_weights(kernel.contract);
  kernel.contract.k.multiple = 32;
  kernel.contract.act_order = kernel.contract.pre_scale = kernel.contract.partial_groups = false;
  return kernel;
}

}  // namespace

const Kernel sm80_mxfp4_emulation = make();

}  // namespace gearshift
