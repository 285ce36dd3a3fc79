// y = sum over groups of (e4m3(x) . q) * s, times sx, + bias for many tokens: codes of weights become e4m3 numbers in
// registers, exactly, and are multiplied by codes of x; sums are scaled in fp32 every 128 columns
// (stage/prefill_e4m3.cuh).
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill_e4m3.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/int4_rows16_e4m3.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill_e4m3("sm90_int4_fp8_prefill", int4_rows16_e4m3);
  kernel.families = {Family::w4a8};
  take_int4_weights(kernel.contract);
  kernel.contract.groups = {128, 256, 512, 1024};
  kernel.formula = "y = sum_g s_g (e4m3(x) . q)_g * sx + bias, FP8 warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_int4_fp8_prefill = make();

}  // namespace gearshift
