// y[m,n] = sx[m] * sum over groups g of s[n,g] * sum over k in g of x8[m,k] * q[n,k], plus bias[n]
//
// Where the processor multiplies tiles of bf16, in which integers of eight and of four bits are exact; one scaling per
// group.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/recipe.h"
#include "kernel/four_bit_weights.h"

namespace gearshift {

namespace {

constexpr Recipe kRecipe{Route::float_panel, ActivationUse::as_checkpoint, &cpu_w4a8_emulation};

Kernel make() {
  Kernel kernel = make_kernel<kRecipe>("cpu_int4_a8_amx_panel");
  kernel.families = {Family::w4a8};
  Contract& contract = kernel.contract;
  contract.isa = Isa::amx;
  take_int4_weights(contract);
  contract.storages = {Storage::nibbles,      Storage::dense_bits,  Storage::word_bits,
                       Storage::gptq_v1,      Storage::gptq_v2,     Storage::awq,
                       Storage::rows_in_byte, Storage::quark_order, Storage::quark_reorder};
  contract.scale_dtypes = {DType::f32, DType::f16, DType::bf16};
  contract.activation_formats = {Format::int8};
  contract.activation_granularities = {Granularity::tensor, Granularity::token};
  kernel.formula = "y = (int8(x) . W) * s * sx + bias, bf16 products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_int4_a8_amx_panel = make();

}  // namespace gearshift
