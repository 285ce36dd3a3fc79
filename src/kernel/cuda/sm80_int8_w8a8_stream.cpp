// y = (int8(x) * int8(W)^T) * sx * sw + bias for 1 to 16 tokens: codes, and their distance to a zero point of x, are
// exact in bf16.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/stream.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_stream("sm80_int8_w8a8_stream", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::int8_w8a8};
  kernel.contract.weight_formats = {Format::int8};
  kernel.contract.groupings = {Grouping::Kind::tensor, Grouping::Kind::row};
  kernel.contract.activation_granularities = {Granularity::tensor, Granularity::token};
  kernel.contract.zero_points = false;
  kernel.formula = "y = ((int8(x) - z) . int8(W)) * sx * sw + bias, bf16 tensor cores, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm80_int8_w8a8_stream = make();

}  // namespace gearshift
