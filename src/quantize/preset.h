// The presets of compressed-tensors by name, as each container stores them: recipe, what the config says about them,
// and what they ask of a layer.
#pragma once

#include "quantize/recipe.h"

namespace gearshift::quantize_detail {

// How a quantized checkpoint names its tensors and describes itself.
enum class Container : uint8_t { compressed_tensors, modelopt };

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

struct Preset {
  std::string_view name;
  const Recipe* recipe = nullptr;  // nullptr: weights stay float
  std::string_view format;         // of the config group; ModelOpt: quant_algo
  std::optional<QuantArgs> weights, input;
  int64_t k_multiple = 1;
  bool static_input = false;  // a scale of activations is stored
};

// Any case. Error usage: no such container.
Result<Container> find_container(std::string_view name);
// Any case. Error usage: lists near and valid names; a preset that is known but not written in this container says so.
Result<const Preset*> find_preset(std::string_view name, Container container);

}  // namespace gearshift::quantize_detail
