// A kernel over layout nibbles_rows16, as data: which activations enter, through which route. The engine does the rest.
#pragma once

#include "gearshift/kernel.h"
#include "kernel/cpu/isa.h"
#include "kernel/cpu/stage/pieces.h"
#include "kernel/layout/nibbles_rows16.h"

namespace gearshift {

enum class Route : uint8_t {
  dot_registers,    // integer dots, weights decoded in registers for every tile of x: few rows
  dot_panel,        // integer dots, weights decoded once per block
  float_registers,  // exact activations
  float_panel
};

struct Recipe {
  Route route = Route::dot_registers;
  ActivationUse use = ActivationUse::as_checkpoint;
  // What runs instead where an index gives columns to groups unevenly (the layout cannot hold them).
  const Kernel* uneven = nullptr;
};

int64_t recipe_workspace(const Recipe& recipe, const LayerSpec& layer, int64_t m, int threads);
void run_recipe(const Recipe& recipe, const RunArgs& args);

// A kernel of the engine; the caller adds families, formula and what its contract restricts further.
template <const Recipe& recipe>
Kernel make_kernel(std::string_view name) {
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "native";
  kernel.activation = recipe.use;
  kernel.layout = &nibbles_rows16;
  kernel.contract.dtypes = {DType::f32, DType::f16, DType::bf16};
  kernel.contract.bits_same_for_any_m = true;
  kernel.contract.verified = verified_processors();
  kernel.workspace_bytes = [](const LayerSpec& layer, int64_t m, int threads) {
    return recipe_workspace(recipe, layer, m, threads);
  };
  kernel.run = [](const RunArgs& args) { run_recipe(recipe, args); };
  return kernel;
}

}  // namespace gearshift
