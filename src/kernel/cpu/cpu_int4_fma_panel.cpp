// y[m,n] = sum over groups g of s[n,g] * sum over k in g of x[m,k] * (q[n,k] - z[n,g]), plus bias[n]
//
// Four-bit integers in every order that checkpoints have them, activations as the checkpoint has them. For many rows: a
// block of weights is decoded once for all of them, to bf16 where the processor multiplies it and x is exact in it.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/recipe.h"
#include "kernel/four_bit_weights.h"

namespace gearshift {

namespace {

constexpr Recipe kRecipe{Route::float_panel, ActivationUse::as_checkpoint, &cpu_mixed_precision_emulation};

Kernel make() {
  Kernel kernel = make_kernel<kRecipe>("cpu_int4_fma_panel");
  kernel.families = {Family::mixed_precision, Family::w4a8};
  Contract& contract = kernel.contract;
  take_int4_weights(contract);
  contract.storages = {Storage::nibbles,      Storage::dense_bits,  Storage::word_bits,
                       Storage::gptq_v1,      Storage::gptq_v2,     Storage::awq,
                       Storage::rows_in_byte, Storage::quark_order, Storage::quark_reorder};
  contract.scale_dtypes = {DType::f32, DType::f16, DType::bf16};
  kernel.formula = "y = x * ((q - z) * s)^T + bias, fp32 or bf16 products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_int4_fma_panel = make();

}  // namespace gearshift
