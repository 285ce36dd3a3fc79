// y = x * (int8(W) * s)^T + bias for 1 to 16 tokens: codes are exact in bf16 and fp16, scales of 128 columns multiply
// their fp32 sum, those of rows the result.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/stream.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_stream("sm80_int8_w8a16_stream", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::mixed_precision};
  kernel.contract.weight_formats = {Format::int8, Format::uint8};
  kernel.contract.groups = {128};
  kernel.contract.zero_points = false;
  kernel.formula = "y = sum_g s_g (x . int8(W))_g + bias, 16-bit tensor cores, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm80_int8_w8a16_stream = make();

}  // namespace gearshift
