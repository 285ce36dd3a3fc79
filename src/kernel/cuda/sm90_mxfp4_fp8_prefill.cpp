// y = (e4m3(x) . (e2m1(W) * 2^Sw)) * sx + bias for many tokens: weights become e4m3 numbers in registers, exactly, and
// are multiplied by codes of x; sums move to fp32 every 256 columns (stage/prefill_e4m3.cuh). Rows whose scales span
// more than e4m3 does are gone through in several passes.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill_e4m3.h"
#include "kernel/four_bit_weights.h"
#include "kernel/layout/mxfp4_rows16_e4m3.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_prefill_e4m3("sm90_mxfp4_fp8_prefill", mxfp4_rows16_e4m3);
  kernel.families = {Family::mxfp4};
  take_mxfp4_weights(kernel.contract);
  kernel.contract.k.multiple = 32;
  kernel.contract.pre_scale = false;
  kernel.formula = "y = (e4m3(x) . (W * 2^Sw)) * sx + bias, FP8 warpgroup products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel sm90_mxfp4_fp8_prefill = make();

}  // namespace gearshift
