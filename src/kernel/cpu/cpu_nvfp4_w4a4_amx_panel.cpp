// y[m,n] = (1/gx * 1/gw) * sum over groups g of Sx[m,g] * Sw[n,g] * sum over k in g of x4[m,k] * w4[n,k], plus bias[n]
//
// Where the processor multiplies tiles of bf16: an e2m1 value times its e4m3 scale is exact in bf16, on both sides.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/recipe.h"
#include "kernel/four_bit_weights.h"

namespace gearshift {

namespace {

constexpr Recipe kRecipe{Route::float_panel, ActivationUse::as_checkpoint};

Kernel make() {
  Kernel kernel = make_kernel<kRecipe>("cpu_nvfp4_w4a4_amx_panel");
  kernel.families = {Family::nvfp4_w4a4};
  Contract& contract = kernel.contract;
  contract.isa = Isa::amx;
  take_nvfp4_weights(contract);
  contract.activation_formats = {Format::e2m1};
  contract.activation_granularities = {Granularity::token_group};
  contract.activation_groups = {16};
  contract.zero_points = contract.act_order = false;
  kernel.formula = "y = (nvfp4(x) . W) * Sx * Sw / (gx * gw) + bias, bf16 products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_nvfp4_w4a4_amx_panel = make();

}  // namespace gearshift
