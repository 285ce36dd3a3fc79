// y[m,n] = sum over groups g of s[n,g] * sum over k in g of x[m,k] * q[n,k], plus bias[n]
//
// Eight-bit integers with activations as they come: codes become fp32, one scaling per group, none inside where a row
// has one scale.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/wide_engine.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_wide("cpu_int8_fma");
  kernel.families = {Family::mixed_precision};
  Contract& contract = kernel.contract;
  contract.weight_formats = {Format::int8, Format::uint8};
  contract.storages = {Storage::dense, Storage::dense_bits, Storage::word_bits, Storage::gptq_v1, Storage::gptq_v2};
  contract.groups = {32, 64, 128, 256, 512, 1024};
  contract.scale_dtypes = {DType::f32, DType::f16, DType::bf16};
  kernel.formula = "y = x * (q * s)^T + bias, fp32 sums, one scaling per group";
  return kernel;
}

}  // namespace

const Kernel cpu_int8_fma = make();

}  // namespace gearshift
