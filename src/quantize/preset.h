// The presets of compressed-tensors by name: recipe, what the config says about them, and what they ask of a layer.
#pragma once

#include "quantize/recipe.h"

namespace gearshift::quantize_detail {

// One arguments object of a config group.
struct QuantArgs {
  int num_bits = 8;
  std::string_view type, strategy;
  int64_t group_size = 0;  // 0: null
  std::string_view block;  // "[128, 128]" or "null"
  bool symmetric = true;
  std::string_view dynamic;      // "true", "false", "\"local\""
  std::string_view scale_dtype;  // "torch.uint8" or "" for null
};

enum class StaticInput : uint8_t { none, global_scale, scale };

struct Preset {
  std::string_view name;
  const Recipe* recipe = nullptr;  // nullptr: weights stay float
  std::string_view format;         // of the config group
  std::optional<QuantArgs> weights, input;
  int64_t k_multiple = 1;
  StaticInput static_input = StaticInput::none;
};

std::span<const Preset> presets();
// Any case. Error usage: lists near and valid names; a preset of compressed-tensors that is not written here says so.
Result<const Preset*> find_preset(std::string_view name);

}  // namespace gearshift::quantize_detail
