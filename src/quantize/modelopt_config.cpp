// Source of both spellings: NVIDIA/Model-Optimizer modelopt/torch/export/{quant_utils,convert_hf_config}.py.
#include "quantize/modelopt_config.h"

#include <algorithm>

#include "quantize/config.h"

namespace gearshift::quantize_detail {
namespace {

// Readers know these checkpoints by the producer's name; the version says who wrote this one.
constexpr std::string_view producer = R"({"name": "modelopt", "version": ")" GEARSHIFT_VERSION R"(+gearshift"})";

std::vector<const Preset*> used_presets(const std::vector<Assignment>& assignments) {
  std::vector<const Preset*> used;
  for (const Assignment& a : assignments) {
    if (a.preset->recipe != nullptr && std::find(used.begin(), used.end(), a.preset) == used.end())
      used.push_back(a.preset);
  }
  return used;
}

std::string quoted(std::string_view key, std::string_view value) {
  return "\"" + std::string(key) + "\": \"" + std::string(value) + "\"";
}
std::string group_size(const Preset& preset) {
  return preset.weights->group_size > 0 ? ", \"group_size\": " + std::to_string(preset.weights->group_size) : "";
}

// "quantized_layers" of MIXED_PRECISION.
std::string layer_entries(const std::vector<LayerSpec>& layers, const std::vector<Assignment>& assignments,
                          const std::string& indent) {
  std::string text = "{";
  std::string_view separator = "\n";
  for (size_t i = 0; i < layers.size(); ++i) {
    const Preset& preset = *assignments[i].preset;
    if (preset.recipe == nullptr) continue;
    text += std::string(separator) + indent + "  " + json_string(layers[i].name) + ": {" +
            quoted("quant_algo", preset.format) + group_size(preset) + "}";
    separator = ",\n";
  }
  return text + "\n" + indent + "}";
}

std::string arguments_of(const QuantArgs& args) {
  const std::string group = args.group_size > 0 ? ", \"group_size\": " + std::to_string(args.group_size) : "";
  return R"({"dynamic": false, "num_bits": )" + std::to_string(args.num_bits) + ", " + quoted("type", args.type) +
         group + "}";
}

// The view in compressed-tensors' style.
std::string config_group(const Preset& preset, const std::vector<std::string>& targets) {
  std::string text = "{\n";
  if (preset.input) text += "        \"input_activations\": " + arguments_of(*preset.input) + ",\n";
  return text + "        \"weights\": " + arguments_of(*preset.weights) +
         ",\n        \"targets\": " + json_list(targets, "        ") + "\n      }";
}

}  // namespace

std::string modelopt_quantization_config(const std::vector<LayerSpec>& layers,
                                         const std::vector<Assignment>& assignments) {
  const std::vector<const Preset*> used = used_presets(assignments);
  const bool mixed = used.size() > 1;
  std::string text = "{\n    \"config_groups\": {";
  for (size_t g = 0; g < used.size(); ++g) {
    std::vector<std::string> targets;
    for (size_t i = 0; mixed && i < layers.size(); ++i) {
      if (assignments[i].preset == used[g]) targets.push_back(layers[i].name);
    }
    if (!mixed) targets.push_back("Linear");
    text += (g == 0 ? "\n" : ",\n") + std::string("      \"group_") + std::to_string(g) +
            "\": " + config_group(*used[g], targets);
  }
  text += "\n    },\n";
  if (mixed) text += "    \"quantized_layers\": " + layer_entries(layers, assignments, "    ") + ",\n";
  text += "    \"ignore\": " + json_list(float_names(layers, assignments), "    ") + ",\n";
  text += "    " + quoted("quant_algo", mixed ? "MIXED_PRECISION" : used.front()->format) + ",\n";
  text += "    \"producer\": " + std::string(producer) + ",\n";
  return text + "    \"quant_method\": \"modelopt\"\n  }";
}

std::string modelopt_hf_quant_config(const std::vector<LayerSpec>& layers, const std::vector<Assignment>& assignments) {
  const std::vector<const Preset*> used = used_presets(assignments);
  const bool mixed = used.size() > 1;
  std::string text = "{\n  \"producer\": " + std::string(producer) + ",\n  \"quantization\": {\n";
  text += "    " + quoted("quant_algo", mixed ? "MIXED_PRECISION" : used.front()->format) +
          (mixed ? "" : group_size(*used.front())) + ",\n    \"kv_cache_quant_algo\": null,\n";
  if (mixed) text += "    \"quantized_layers\": " + layer_entries(layers, assignments, "    ") + ",\n";
  return text + "    \"exclude_modules\": " + json_list(float_names(layers, assignments), "    ") + "\n  }\n}\n";
}

}  // namespace gearshift::quantize_detail
