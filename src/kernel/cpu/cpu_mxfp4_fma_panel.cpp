// y = mx(x) * (e2m1(W) * 2^e)^T + bias: activations as the checkpoint has them (as they come for gpt-oss, MXFP8). For
// many rows: a block of weights is decoded once for all of them, to bf16 where the processor multiplies it and x is
// exact in it.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/recipe.h"
#include "kernel/four_bit_weights.h"

namespace gearshift {

namespace {

constexpr Recipe kRecipe{Route::float_panel, ActivationUse::as_checkpoint};

Kernel make() {
  Kernel kernel = make_kernel<kRecipe>("cpu_mxfp4_fma_panel");
  kernel.families = {Family::mxfp4};
  Contract& contract = kernel.contract;
  take_mxfp4_weights(contract);
  contract.zero_points = contract.act_order = false;
  kernel.formula = "y = mx(x) * (W * 2^ew)^T + bias, fp32 or bf16 products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_mxfp4_fma_panel = make();

}  // namespace gearshift
