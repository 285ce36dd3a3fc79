// y[m,n] = sx[m] * sum over groups g of s[n,g] * sum over k in g of x8[m,k] * q[n,k], plus bias[n]
//
// int8 activations by the checkpoint's recipe, integer dots, one scaling per group at most. For few rows: weights are
// decoded in registers.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/recipe.h"
#include "kernel/four_bit_weights.h"

namespace gearshift {

namespace {

constexpr Recipe kRecipe{Route::dot_registers, ActivationUse::as_checkpoint, &cpu_w4a8_emulation};

Kernel make() {
  Kernel kernel = make_kernel<kRecipe>("cpu_int4_a8_dot");
  kernel.families = {Family::w4a8};
  Contract& contract = kernel.contract;
  take_int4_weights(contract);
  contract.storages = {Storage::nibbles,      Storage::dense_bits,  Storage::word_bits,
                       Storage::gptq_v1,      Storage::gptq_v2,     Storage::awq,
                       Storage::rows_in_byte, Storage::quark_order, Storage::quark_reorder};
  contract.scale_dtypes = {DType::f32, DType::f16, DType::bf16};
  contract.activation_formats = {Format::int8};
  contract.activation_granularities = {Granularity::tensor, Granularity::token};
  contract.zero_points = contract.asymmetric_activations = false;
  kernel.formula = "y = (int8(x) . W) * s * sx + bias, int32 dots, scaled per group, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_int4_a8_dot = make();

}  // namespace gearshift
