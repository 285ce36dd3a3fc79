// y = x * (e4m3(W) * s)^T + bias for 1 to 16 tokens: codes are exact in bf16 and fp16, scales of blocks multiply the
// fp32 sum of their 128 columns, those of rows and tensors the result (stage/decode_rows.cuh).
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/stream.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_stream("sm80_w8a16_fp8_stream", ActivationUse::float16, code_rows);
  kernel.families = {Family::w8a16_fp8, Family::fp8_w8a8, Family::fp8_block_w8a8};
  kernel.contract.weight_formats = {Format::e4m3};
  kernel.contract.groups = {128};
  kernel.formula = "y = sum_b s_b (x . e4m3(W))_b + bias, 16-bit tensor cores, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm80_w8a16_fp8_stream = make();

}  // namespace gearshift
