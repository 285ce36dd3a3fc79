// A checkpoint of one layer that no file holds: from a float matrix, or from tensors that are quantized already.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/try.h"
#include "checkpoint/in_memory.h"
#include "quantize/activations.h"
#include "quantize/config.h"
#include "quantize/matrix.h"
#include "quantize/widen.h"

namespace gearshift {
namespace {

using namespace quantize_detail;

ErrorInfo misused(std::string subject, std::string found, std::string wanted) {
  return {ErrorCode::usage, std::move(subject), std::move(found), std::move(wanted), "", {}};
}

std::string full_name(std::string_view suffix) { return std::string(layer_in_memory) + "." + std::string(suffix); }

// What a config says about activations, in the words of transformers.
std::string_view dtype_word(DType dtype) {
  return dtype == DType::f32 ? "float32" : dtype == DType::f16 ? "float16" : "bfloat16";
}

Result<std::string> config_of(DType dtype, const std::string& quantization_config) {
  const std::string config = "{\n  \"dtype\": \"" + std::string(dtype_word(dtype)) + "\"\n}\n";
  if (quantization_config.empty()) return config;
  return with_quantization_config(config, quantization_config);
}

// `tensors` by their names behind the layer's.
Result<Checkpoint> checkpoint_of(const std::vector<TensorInMemory>& tensors, std::string config) {
  std::vector<MemoryTensor> named;
  for (const TensorInMemory& tensor : tensors)
    named.push_back({full_name(tensor.name), tensor.dtype, tensor.shape, tensor.data});
  return checkpoint_in_memory("memory", named, {{"config.json", std::move(config)}});
}

// The config of the one layer in this preset; "" where it stays float.
std::string preset_config(const Preset& preset) {
  if (preset.recipe == nullptr) return "";
  LayerSpec layer;
  layer.name = layer_in_memory;
  return quantization_config({layer}, {{&preset, 0}}, {{layer.name, std::string(preset.name)}});
}

}  // namespace

Result<QuantizedInMemory> quantize_layer(const QuantizeLayerRequest& request) {
  TensorInMemory weight = request.weight;
  weight.name = "weight";
  if (weight.shape.size() != 2) return misused("weight", "shape " + to_string(weight.shape), "two dimensions: [N,K]");
  if (!is_float16_or_32(weight.dtype)) return misused("weight", std::string(name(weight.dtype)), "F32, F16 or BF16");
  if (!(request.input_amax >= 0) || std::isinf(request.input_amax)) {
    return misused("input_amax", std::to_string(request.input_amax), "a finite magnitude; 0 where it is not known");
  }
  std::vector<TensorInMemory> tensors = {weight};
  if (request.bias) {
    tensors.push_back(*request.bias);
    tensors.back().name = "bias";
  }
  GEARSHIFT_TRY(const std::string float_config, config_of(weight.dtype, ""));
  GEARSHIFT_TRY(Checkpoint model, checkpoint_of(tensors, float_config));
  GEARSHIFT_TRY(const ModelLayers read, read_layers(model));
  if (read.layers.empty())
    return misused("weight", "shape " + to_string(weight.shape), "a matrix with rows and columns");
  GEARSHIFT_TRY(const RuleResult rules, apply_rules(read.layers, {{std::string(layer_in_memory), request.scheme}},
                                                    Container::compressed_tensors));
  const Preset& preset = *rules.modules.front().preset;
  QuantizedLayer layer;
  layer.name = layer_in_memory;
  layer.scheme = preset.name;
  layer.n = weight.shape[0];
  layer.k = weight.shape[1];
  layer.bytes_before = layer.bytes_after = weight.data.size();
  if (preset.recipe == nullptr) return QuantizedInMemory{std::move(model), std::move(layer)};

  ModuleFacts facts{layer.n, layer.k, weight.dtype, 0, 0, assumed_amax};
  GEARSHIFT_TRY(facts.amax, finite_amax("weight", weight.dtype, weight.shape, weight.data));
  facts.shared_amax = facts.amax;
  if (request.input_amax > 0) facts.input_amax = static_cast<float>(request.input_amax);
  std::vector<std::vector<uint8_t>> made;
  std::vector<uint8_t*> out;
  std::vector<TensorInMemory> coded;
  layer.bytes_after = 0;
  for (OutTensor& tensor : preset.recipe->tensors(facts)) {
    int64_t size = bits(tensor.dtype) / 8;
    for (const int64_t extent : tensor.shape) size *= extent;
    made.emplace_back(static_cast<size_t>(size));
    out.push_back(made.back().data());
    coded.push_back({std::string(tensor.suffix), tensor.dtype, std::move(tensor.shape), made.back()});
    layer.bytes_after += static_cast<uint64_t>(size);
  }
  const WeightError error = encode_matrix(*preset.recipe, facts, weight.data, out);
  layer.relative_error = error.relative;
  layer.cosine = error.cosine;
  layer.worst_row = error.worst_row;
  coded.insert(coded.end(), std::next(tensors.begin()), tensors.end());
  GEARSHIFT_TRY(const std::string config, config_of(weight.dtype, preset_config(preset)));
  GEARSHIFT_TRY(Checkpoint checkpoint, checkpoint_of(coded, config));
  return QuantizedInMemory{std::move(checkpoint), std::move(layer)};
}

Result<Checkpoint> layer_of_tensors(const std::string& scheme, std::vector<TensorInMemory> tensors, DType dtype) {
  std::string quantization_config = scheme;
  if (scheme.find('{') == std::string::npos) {
    GEARSHIFT_TRY(const Preset* preset, find_preset(scheme, Container::compressed_tensors));
    quantization_config = preset_config(*preset);
    // Names and types do not depend on the shape, which the tensors' own have yet to show.
    constexpr int64_t any_size = 128;
    const std::vector<OutTensor> expected = preset->recipe == nullptr
                                                ? std::vector<OutTensor>{}
                                                : preset->recipe->tensors({any_size, any_size, dtype, 1, 1, 1});
    const auto find = [&](std::string_view suffix) {
      return std::find_if(expected.begin(), expected.end(), [&](const OutTensor& t) { return t.suffix == suffix; });
    };
    for (TensorInMemory& tensor : tensors) {
      if (tensor.name == "weight" && find("weight") == expected.end() && find("weight_packed") != expected.end())
        tensor.name = "weight_packed";
      const auto as = find(tensor.name);
      if (as != expected.end() && tensor.dtype == DType::u8 && bits(as->dtype) == 8) tensor.dtype = as->dtype;
    }
  }
  GEARSHIFT_TRY(const std::string config, config_of(dtype, quantization_config));
  return checkpoint_of(tensors, config);
}

}  // namespace gearshift
