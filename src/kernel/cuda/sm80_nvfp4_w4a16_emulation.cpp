// y = x * (e2m1(W) * Sw)^T / gw + bias: weights are exact in bf16, the tensor-wide scale comes last, per part.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/nvfp4_rows16_mma.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_nvfp4_w4a16_emulation", ActivationUse::float16, nvfp4_rows16_mma);
  kernel.families = {Family::nvfp4_w4a16, Family::nvfp4_w4a4};
  take_nvfp4_weights(kernel.contract);
  kernel.contract.k.multiple = 16;
  kernel.contract.act_order = kernel.contract.pre_scale = kernel.contract.partial_groups = false;
  return kernel;
}

}  // namespace

const Kernel sm80_nvfp4_w4a16_emulation = make();

}  // namespace gearshift
