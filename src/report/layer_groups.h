// Layers that a reader sees as one: the same role in every block, shape, scheme and kernels.
#pragma once

#include <string>
#include <vector>

#include "gearshift/plan.h"

namespace gearshift {

// "model.layers.12.mlp.up_proj" -> "model.layers.*.mlp.up_proj"; a component that is not a number stays.
std::string role_pattern(std::string_view layer_name);

struct LayerGroup {
  std::string pattern;                   // the name itself where the group holds one layer
  std::string scheme;                    // scheme_name
  std::vector<const LayerPlan*> layers;  // at least one, in the plan's order
  uint64_t weight_bytes = 0;             // of all its layers

  const LayerSpec& spec() const { return layers.front()->layer; }
  const Decision& decision() const { return *layers.front()->decision; }
};
// "model.layers.*.mlp.up_proj: 28 layers of 1536 x 384, NVFP4, weights 9.29 MB"
std::string group_title(const LayerGroup& group);
// In the order of their first layers. The groups point into `plan`.
std::vector<LayerGroup> group_layers(const Plan& plan);

}  // namespace gearshift
