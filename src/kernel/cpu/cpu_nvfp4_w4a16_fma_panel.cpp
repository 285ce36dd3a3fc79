// y = x * (e2m1(W) * e4m3(S))^T * global + bias: activations as they come. For many rows: a block of weights is decoded
// once for all of them, to bf16 where the processor multiplies it and x is exact in it.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/recipe.h"
#include "kernel/four_bit_weights.h"

namespace gearshift {

namespace {

constexpr Recipe kRecipe{Route::float_panel, ActivationUse::float16};

Kernel make() {
  Kernel kernel = make_kernel<kRecipe>("cpu_nvfp4_w4a16_fma_panel");
  kernel.families = {Family::nvfp4_w4a16, Family::nvfp4_w4a4};
  Contract& contract = kernel.contract;
  take_nvfp4_weights(contract);
  contract.zero_points = contract.act_order = false;
  kernel.formula = "y = x * (W * Sw)^T * global + bias, fp32 or bf16 products, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_nvfp4_w4a16_fma_panel = make();

}  // namespace gearshift
