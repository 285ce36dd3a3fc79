// y = x * (e4m3(W) * s)^T + bias; a scale per tensor comes last, those per row or block are rounded into the weights.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_w8a16_fp8_emulation", ActivationUse::float16, code_rows);
  kernel.families = {Family::w8a16_fp8, Family::fp8_w8a8, Family::fp8_block_w8a8};
  kernel.contract.weight_formats = {Format::e4m3};
  kernel.bound_product = kRoundedOperand;
  return kernel;
}

}  // namespace

const Kernel sm80_w8a16_fp8_emulation = make();

}  // namespace gearshift
