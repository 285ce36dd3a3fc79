// y = (e4m3(x) * e4m3(W)^T) * sx * sw + bias for 1 to 16 tokens: codes of both are exact in bf16, scales come last.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/stream.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_stream("sm80_fp8_w8a8_stream", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::fp8_w8a8};
  kernel.contract.weight_formats = {Format::e4m3};
  kernel.contract.groupings = {Grouping::Kind::tensor, Grouping::Kind::row};
  kernel.contract.activation_granularities = {Granularity::tensor, Granularity::token};
  kernel.formula = "y = (e4m3(x) . e4m3(W)) * sx * sw + bias, bf16 tensor cores, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm80_fp8_w8a8_stream = make();

}  // namespace gearshift
