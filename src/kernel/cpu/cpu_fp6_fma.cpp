// y = mx(x) * (e2m3 or e3m2(W) * 2^e)^T + bias: a power-of-two scale per 32 columns, activations as the checkpoint has
// them.
//
// Weights are packed as e4m3, which has every fp6 value: a third more bytes, and the arithmetic of cpu_fp8_fma.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/wide_engine.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_wide("cpu_fp6_fma", false);
  kernel.families = {Family::mxfp6};
  kernel.contract.weight_formats = {Format::e2m3, Format::e3m2};
  kernel.contract.storages = {Storage::fp6_bytes};
  kernel.contract.groups = {32, 64, 128, 256, 512, 1024};
  kernel.formula = "y = mx(x) * (W * 2^ew)^T + bias, fp32 sums, one scaling per group";
  return kernel;
}

}  // namespace

const Kernel cpu_fp6_fma = make();

}  // namespace gearshift
