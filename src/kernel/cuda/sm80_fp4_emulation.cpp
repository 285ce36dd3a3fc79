// y = quantize(x) * dequantize(W)^T + bias for e2m1 weights that no tensor-core layout takes: a vector multiplied onto
// x first, K that ends inside a group.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_fp4_emulation", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::nvfp4_w4a4, Family::nvfp4_w4a16, Family::mxfp4};
  kernel.contract.weight_formats = {Format::e2m1};
  kernel.bound_product = kRoundedOperand;  // a pre-scale of 16 bits rounds x
  return kernel;
}

}  // namespace

const Kernel sm80_fp4_emulation = make();

}  // namespace gearshift
