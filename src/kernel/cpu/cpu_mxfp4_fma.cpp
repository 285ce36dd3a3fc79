// y = mx(x) * (e2m1(W) * 2^e)^T + bias: activations as the checkpoint has them (as they come for gpt-oss, MXFP8). For
// few rows: weights are decoded in registers.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/recipe.h"
#include "kernel/four_bit_weights.h"

namespace gearshift {

namespace {

constexpr Recipe kRecipe{Route::float_registers, ActivationUse::as_checkpoint};

Kernel make() {
  Kernel kernel = make_kernel<kRecipe>("cpu_mxfp4_fma");
  kernel.families = {Family::mxfp4};
  Contract& contract = kernel.contract;
  take_mxfp4_weights(contract);
  contract.zero_points = contract.act_order = false;
  kernel.formula = "y = mx(x) * (W * 2^ew)^T + bias, fp32, one scaling per group";
  return kernel;
}

}  // namespace

const Kernel cpu_mxfp4_fma = make();

}  // namespace gearshift
