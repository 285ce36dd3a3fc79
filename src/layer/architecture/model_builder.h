// Collects the modules of a model, with the blocks that architectures have in common.
#pragma once

#include <map>

#include "layer/architecture/config_numbers.h"
#include "layer/architecture/float_module.h"
#include "layer/quant_config.h"

namespace gearshift {

// How many experts a layer has, by what stands before their numbers: "model.layers.3.mlp.experts".
using ExpertCounts = std::map<std::string, int64_t, std::less<>>;

class ModelBuilder {
 public:
  // Language model keys: those of text_config, else the top level's. Where `counts` is given, only the first of the
  // experts that are stored one by one is added, and their number goes there.
  explicit ModelBuilder(const ModelConfig& config, ExpertCounts* counts = nullptr);

  const ModelConfig& config() const { return config_; }
  ConfigNumbers& numbers() { return numbers_; }
  int64_t hidden() const { return hidden_; }

  // Fails where the model gets absurdly large or a shape has no elements.
  void add(FloatModule module);
  void linear(std::string name, int64_t n, int64_t k, bool bias = false);
  // Marks what is added from now on as part of a draft layer.
  void draft(bool is_draft) { draft_ = is_draft; }

  // q, k, v and o with grouped heads. `gated`: q makes a gate of its own size, too. `keys_are_values`: there is no v.
  struct Attention {
    int64_t heads = 0, key_value_heads = 0, head_dim = 0;
    bool qkv_bias = false, output_bias = false;
    bool gated = false;
    bool keys_are_values = false;
  };
  void attention(const std::string& prefix, const Attention& attention);
  // gate_proj, up_proj and down_proj.
  void gated_mlp(const std::string& prefix, int64_t intermediate, bool bias = false);
  // Routed experts under `prefix`.experts: number after number, or two stacks (gate and up merged).
  void experts(const std::string& prefix, int64_t count, int64_t intermediate, bool bias = false);
  // How many of `count` experts under `container` to add: all, or one that stands for them.
  int64_t experts_to_add(const std::string& container, int64_t count);
  void expert_stacks(const std::string& prefix, int64_t count, int64_t intermediate, bool bias, bool transposed);

  // The embedding, and the output head with its own weight or (`tied`) the embedding's. `vocabulary`: where the config
  // says nothing; 0: it must.
  void embedding_and_head(const std::string& embedding, const std::string& head, bool tied, int64_t vocabulary = 0);

  // Writers of quantized checkpoints store experts one by one where the float checkpoint has stacks.
  bool quantized() const { return config_.quant.dict != nullptr; }

  bool failed() const { return error_.has_value() || numbers_.failed(); }
  Result<std::vector<FloatModule>> finish();
  void fail(ErrorInfo error);

 private:
  const ModelConfig& config_;
  ConfigNumbers numbers_;
  int64_t hidden_ = 0;
  ExpertCounts* counts_;
  size_t unnamed_ = 0;  // modules of experts that were left out
  bool draft_ = false;
  std::optional<ErrorInfo> error_;
  std::vector<FloatModule> modules_;
};

// heads, key_value_heads, head_dim of the language model under their usual keys. `head_dim` 0: hidden_size / heads
// where the config doesn't say.
ModelBuilder::Attention usual_attention(ModelBuilder& model, int64_t head_dim = 0);
std::string layer_prefix(const std::string& layers, int64_t index);  // "model.layers", 3 -> "model.layers.3."

}  // namespace gearshift
