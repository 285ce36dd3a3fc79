// y = sum over 128 columns of (e4m3(x) . e4m3(W)) * sx * sw, + bias, for 1 to 16 tokens: codes are exact in bf16, both
// scales multiply the fp32 sum of their 128 columns.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/stream.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_stream("sm80_fp8_block_w8a8_stream", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::fp8_block_w8a8};
  kernel.contract.weight_formats = {Format::e4m3};
  kernel.contract.groupings = {Grouping::Kind::block, Grouping::Kind::group};
  kernel.contract.groups = {128};
  kernel.contract.activation_groups = {128};
  kernel.formula = "y = sum_b sx_b sw_b (e4m3(x) . e4m3(W))_b + bias, bf16 tensor cores, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm80_fp8_block_w8a8_stream = make();

}  // namespace gearshift
