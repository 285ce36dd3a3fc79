// y[m,n] = sum over groups g of 2^(ex[m,g] + ew[n,g]) * sum over k in g of x4[m,k] * w4[n,k], plus bias[n]
//
// Where the processor multiplies tiles of bf16: an e2m1 value times its power of two is exact in bf16, on both sides.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/recipe.h"
#include "kernel/four_bit_weights.h"

namespace gearshift {

namespace {

constexpr Recipe kRecipe{Route::float_panel, ActivationUse::as_checkpoint};

Kernel make() {
  Kernel kernel = make_kernel<kRecipe>("cpu_mxfp4_amx_panel");
  kernel.families = {Family::mxfp4};
  Contract& contract = kernel.contract;
  contract.isa = Isa::amx;
  take_mxfp4_weights(contract);
  contract.activation_formats = {Format::e2m1};
  contract.activation_granularities = {Granularity::token_group};
  contract.activation_groups = {32};
  contract.zero_points = contract.act_order = false;
  kernel.formula = "y = (mxfp4(x) . W) * 2^ex * 2^ew + bias, bf16 products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_mxfp4_amx_panel = make();

}  // namespace gearshift
