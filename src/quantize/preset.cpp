#include "quantize/preset.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace gearshift::quantize_detail {
namespace {

constexpr QuantArgs fp4_group16(std::string_view dynamic) {
  return {4, "float", "tensor_group", 16, "null", true, dynamic, "torch.float8_e4m3fn"};
}
constexpr QuantArgs mx(int num_bits, std::string_view dynamic) {
  return {num_bits, "float", "group", 32, "null", true, dynamic, "torch.uint8"};
}
constexpr QuantArgs plain(int num_bits, std::string_view type, std::string_view strategy, std::string_view dynamic,
                          int64_t group_size = 0, bool symmetric = true) {
  return {num_bits, type, strategy, group_size, "null", symmetric, dynamic, ""};
}
constexpr QuantArgs fp8_block{8, "float", "block", 0, "[128, 128]", true, "false", ""};

const Preset unquantized{"UNQUANTIZED", nullptr, "dense", std::nullopt, std::nullopt};

// Source: compressed-tensors quantization/quant_scheme.py; formats as its compressors claim them.
const std::array compressed_tensors_table{
    Preset{"NVFP4", &recipe_nvfp4, "nvfp4-pack-quantized", fp4_group16("false"), fp4_group16("\"local\""), 16, true},
    Preset{"NVFP4A16", &recipe_nvfp4_a16, "nvfp4-pack-quantized", fp4_group16("false"), std::nullopt, 16},
    Preset{"FP8", &recipe_fp8_tensor, "float-quantized", plain(8, "float", "tensor", "false"),
           plain(8, "float", "tensor", "false"), 1, true},
    Preset{"FP8_DYNAMIC", &recipe_fp8_channel, "float-quantized", plain(8, "float", "channel", "false"),
           plain(8, "float", "token", "true")},
    Preset{"FP8_BLOCK", &recipe_fp8_block, "float-quantized", fp8_block, plain(8, "float", "group", "true", 128)},
    Preset{"INT8", &recipe_int8_channel, "int-quantized", plain(8, "int", "channel", "false"),
           plain(8, "int", "token", "true")},
    Preset{"W4A16", &recipe_int4_group128, "pack-quantized", plain(4, "int", "group", "false", 128), std::nullopt, 128},
    Preset{"W4A16_ASYM", &recipe_int4_group128_asymmetric, "pack-quantized",
           plain(4, "int", "group", "false", 128, false), std::nullopt, 128},
    Preset{"MXFP4", &recipe_mxfp4, "mxfp4-pack-quantized", mx(4, "false"), mx(4, "true"), 32},
    Preset{"MXFP8", &recipe_mxfp8, "mxfp8-quantized", mx(8, "false"), mx(8, "true"), 32},
    unquantized,
};

// Source: NVIDIA/Model-Optimizer modelopt/torch/export (quant_utils.py, convert_hf_config.py).
const std::array modelopt_table{
    Preset{"NVFP4", &recipe_modelopt_nvfp4, "NVFP4", fp4_group16("false"), fp4_group16("false"), 16, true},
    Preset{"NVFP4A16", &recipe_modelopt_nvfp4_a16, "W4A16_NVFP4", fp4_group16("false"), std::nullopt, 16},
    Preset{"FP8", &recipe_modelopt_fp8, "FP8", plain(8, "float", "tensor", "false"),
           plain(8, "float", "tensor", "false"), 1, true},
    unquantized,
};

// Presets of the library that nothing here writes.
constexpr std::array<std::string_view, 21> unwritten{
    "W4AFP8", "MXFP4A16", "MXFP4XFP8", "MXFP6A16", "MXFP6A8", "MXFP8A16", "W2A4",  "W2A8", "W2A16", "W3A4", "W3A8",
    "W3A16",  "W4A4",     "W4A8",      "W5A8",     "W5A16",   "W6A8",     "W6A16", "W7A8", "W7A16", "W8A16"};

std::span<const Preset> table_of(Container container) {
  return container == Container::modelopt ? std::span<const Preset>(modelopt_table) : compressed_tensors_table;
}

bool has(std::span<const Preset> table, std::string_view lower_name) {
  return std::any_of(table.begin(), table.end(), [&](const Preset& p) { return lower(p.name) == lower_name; });
}

}  // namespace

Result<Container> find_container(std::string_view name) {
  if (lower(name) == "compressed-tensors") return Container::compressed_tensors;
  if (lower(name) == "modelopt") return Container::modelopt;
  return ErrorInfo{ErrorCode::usage, "--container", printable(name), "compressed-tensors or modelopt", "", {}};
}

Result<const Preset*> find_preset(std::string_view name, Container container) {
  const std::string wanted = lower(name) == "w8a8" ? "int8" : lower(name);  // the library's other name for it
  const std::span<const Preset> table = table_of(container);
  std::vector<std::string_view> names;
  for (const Preset& preset : table) {
    if (lower(preset.name) == wanted) return &preset;
    names.push_back(preset.name);
  }
  ErrorInfo error{ErrorCode::usage, "--scheme", printable(name), "one of", "", {}};
  for (std::string_view valid : names) error.wanted += (valid == names.front() ? " " : ", ") + std::string(valid);
  if (has(compressed_tensors_table, wanted)) {
    error.hint = "the ModelOpt container holds these only; --container compressed-tensors holds every scheme";
  } else if (std::any_of(unwritten.begin(), unwritten.end(), [&](std::string_view u) { return lower(u) == wanted; })) {
    error.hint = "this preset of compressed-tensors is not written yet";
  } else if (const auto near = near_names(name, names); !near.empty()) {
    error.hint = "did you mean " + join(near, " or ") + "?";
  }
  return error;
}

}  // namespace gearshift::quantize_detail
