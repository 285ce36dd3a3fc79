// y[m,n] = sum over groups g of 2^(ex[m,g] + ew[n,g]) * sum over k in g of x4[m,k] * w4[n,k], plus bias[n]
//
// MXFP4 activations by the checkpoint's recipe, integer dots of doubled codes. For few rows: weights are decoded in
// registers again for every tile of x, and cost one pass over memory.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/recipe.h"
#include "kernel/four_bit_weights.h"

namespace gearshift {

namespace {

constexpr Recipe kRecipe{Route::dot_registers, ActivationUse::as_checkpoint};

Kernel make() {
  Kernel kernel = make_kernel<kRecipe>("cpu_mxfp4_dot");
  kernel.families = {Family::mxfp4};
  Contract& contract = kernel.contract;
  take_mxfp4_weights(contract);
  contract.activation_formats = {Format::e2m1};
  contract.activation_granularities = {Granularity::token_group};
  contract.activation_groups = {32};
  contract.zero_points = contract.act_order = false;
  kernel.formula = "y = (mxfp4(x) . W) * 2^ex * 2^ew + bias, int32 dots per group, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_mxfp4_dot = make();

}  // namespace gearshift
