// y = fp8(x) * (e4m3(W) * s)^T + bias: scales per tensor, row, 128-wide block or 32 columns, activations as the
// checkpoint has them (as they come where it quantizes none).
//
// e4m3 values are exact in bf16: products by tiles of AMX where x is exact in bf16 too, one scaling per group, none
// inside where a row has one scale.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/wide_engine.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_wide("cpu_fp8_amx");
  kernel.families = {Family::w8a16_fp8, Family::fp8_w8a8, Family::fp8_block_w8a8, Family::mxfp8};
  kernel.contract.isa = Isa::amx;
  kernel.contract.weight_formats = {Format::e4m3};
  kernel.contract.groups = {32, 64, 128, 256, 512, 1024};
  kernel.formula = "y = fp8(x) * (W * s)^T + bias, bf16 products, fp32 sums, one scaling per group";
  return kernel;
}

}  // namespace

const Kernel cpu_fp8_amx = make();

}  // namespace gearshift
