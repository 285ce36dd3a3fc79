// y = quantize(x) * (code(W) * 2^Sw)^T + bias: powers of two are exact.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_emulation("sm80_mxfp6_emulation", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::mxfp6};
  kernel.contract.weight_formats = {Format::e2m3, Format::e3m2};
  kernel.contract.scale_dtypes = {DType::f8_e8m0};
  return kernel;
}

}  // namespace

const Kernel sm80_mxfp6_emulation = make();

}  // namespace gearshift
