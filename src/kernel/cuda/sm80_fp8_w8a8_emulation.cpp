// y = (e4m3(x) * e4m3(W)^T) * sx * sw + bias: codes enter the product exactly, scales per token, channel and tensor
// come last.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_fp8_w8a8_emulation", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::fp8_w8a8};
  kernel.contract.weight_formats = {Format::e4m3};
  kernel.contract.groupings = {Grouping::Kind::tensor, Grouping::Kind::row};
  return kernel;
}

}  // namespace

const Kernel sm80_fp8_w8a8_emulation = make();

}  // namespace gearshift
