// y = x * (e4m3(W) * s)^T + bias for many tokens, codes decoded in registers (stage/prefill.cuh). Codes are exact in
// bf16 and fp16, scales of rows and tensors multiply the result; those of blocks, and their products with codes, are
// rounded once to bf16.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill("sm90_w8a16_fp8_prefill", ActivationUse::float16, code_rows);
  kernel.families = {Family::w8a16_fp8, Family::fp8_w8a8, Family::fp8_block_w8a8};
  kernel.contract.weight_formats = {Format::e4m3};
  kernel.contract.groups = {128};
  kernel.contract.where = {fp16_without_group_scales()};
  kernel.bound_product = 2.01 * kRoundedOperand;
  kernel.formula = "y = x . (s_b e4m3(W)) + bias, 16-bit warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_w8a16_fp8_prefill = make();

}  // namespace gearshift
