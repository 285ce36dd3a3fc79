// What the config files of a checkpoint say: architecture, dtype and where the quantization dictionary lives
// (formats.md section 1).
#pragma once

#include <memory>

#include "base/json.h"
#include "gearshift/checkpoint.h"

namespace gearshift {

// The quantization dictionary of a checkpoint. `dict` is null when there is none.
struct QuantConfig {
  std::string method;  // lower case, aliases resolved: "compressed-tensors", "modelopt", "gptq"; "" when there is none
  const Json* dict = nullptr;  // borrowed from ModelConfig
  std::string source;          // for messages: "config.json: quantization_config"
  // The dictionary stands inside text_config: it covers the language model only, with names relative to it.
  bool text_only = false;

  // "config.json: quantization_config.ignore": how a message names a key of the dictionary.
  std::string key(std::string_view name) const { return source + "." + std::string(name); }
};

struct ModelConfig {
  std::shared_ptr<const Json> config;  // config.json; kind null when there is none
  std::shared_ptr<const Json> side;    // the side file that `quant.dict` came from; null otherwise
  QuantConfig quant;
  std::string architecture, model_type;  // model_type: the text model's where it has its own
  std::optional<DType> dtype;  // of activations, where a config states it
  bool tied_head = false;      // tie_word_embeddings
  int64_t hidden_layers = 0;   // num_hidden_layers; 0 unknown
  int64_t hidden_size = 0;     // 0 unknown
  int64_t experts = 0;         // routed experts of a layer; 0 unknown or none

  // Member of config.json or of its text_config; nullptr when neither has it.
  const Json* find(std::string_view key) const;
};

// Reads config.json and the side files. Errors: damaged_checkpoint (no JSON, or wrong types where it matters).
Result<ModelConfig> read_model_config(const Checkpoint& checkpoint);

}  // namespace gearshift
