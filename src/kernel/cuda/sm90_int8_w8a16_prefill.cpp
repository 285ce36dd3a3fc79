// y = x * (int8(W) * s)^T + bias for many tokens, codes decoded in registers (stage/prefill.cuh). Codes are exact in
// bf16 and fp16, scales of rows multiply the result; those of 128 columns, and their products with codes, are rounded
// once to bf16.
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill.h"
#include "kernel/layout/code_rows.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill("sm90_int8_w8a16_prefill", ActivationUse::as_checkpoint, code_rows);
  kernel.families = {Family::mixed_precision};
  kernel.contract.weight_formats = {Format::int8, Format::uint8};
  kernel.contract.groups = {128};
  kernel.contract.zero_points = false;
  kernel.contract.where = {fp16_without_group_scales()};
  kernel.bound_product = 2.01 * kRoundedOperand;
  kernel.formula = "y = x . (s_g int8(W)) + bias, 16-bit warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_int8_w8a16_prefill = make();

}  // namespace gearshift
