// y = quantize(x) * (e4m3(W) * 2^Sw)^T + bias for 1 to 16 tokens: codes are exact in bf16 and fp16, powers of two
// multiply the fp32 sum of their 32 columns.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/stream.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_stream("sm80_mxfp8_stream", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::mxfp8};
  kernel.contract.weight_formats = {Format::e4m3};
  kernel.contract.scale_dtypes = {DType::f8_e8m0};
  kernel.contract.groups = {32};
  kernel.formula = "y = sum_g 2^Sw_g (mxfp8(x) . e4m3(W))_g + bias, 16-bit tensor cores, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm80_mxfp8_stream = make();

}  // namespace gearshift
