// Decoders that mix attention with layers that keep a state: Qwen3-Next, Qwen3.5 (gated delta rule), Nemotron-H
// (Mamba).
#include <algorithm>

#include "base/text.h"
#include "layer/architecture/architecture.h"

namespace gearshift::architecture {
namespace {

// ---- Qwen3-Next and Qwen3.5 -----------------------------------------------------------------------------------------

struct Qwen {
  ModelBuilder::Attention attention;
  int64_t key_heads = 1, value_heads = 1, key_dim = 1, value_dim = 1;  // of the linear attention
  bool split_projections = false;                                      // Qwen3.5: qkv, z, a and b; else qkvz and ba
  int64_t intermediate = 0;                                            // of dense layers; 0 where there are none
  int64_t experts = 0, expert_intermediate = 1, shared_intermediate = 0, step = 1;
  std::vector<int64_t> dense_layers;
};

Qwen read_qwen(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  Qwen qwen;
  qwen.attention = usual_attention(model, 256);
  qwen.attention.qkv_bias = qwen.attention.output_bias = numbers.flag("attention_bias", false);
  qwen.attention.gated = numbers.flag("attn_output_gate", true);
  qwen.key_heads = numbers.count("linear_num_key_heads");
  qwen.value_heads = numbers.count("linear_num_value_heads");
  qwen.key_dim = numbers.size("linear_key_head_dim");
  qwen.value_dim = numbers.size("linear_value_head_dim");
  qwen.experts = numbers.count("num_experts", 0);
  if (qwen.experts > 0) {
    qwen.expert_intermediate = numbers.size("moe_intermediate_size");
    qwen.shared_intermediate = numbers.size("shared_expert_intermediate_size");
    qwen.step = numbers.size("decoder_sparse_step", 1);
    qwen.dense_layers = numbers.numbers("mlp_only_layers");
  }
  return qwen;
}

void linear_attention(ModelBuilder& model, const std::string& prefix, const Qwen& qwen) {
  const int64_t hidden = model.hidden(), keys = qwen.key_heads * qwen.key_dim,
                values = qwen.value_heads * qwen.value_dim;
  if (qwen.split_projections) {
    model.linear(prefix + "in_proj_qkv", 2 * keys + values, hidden);
    model.linear(prefix + "in_proj_z", values, hidden);
    model.linear(prefix + "in_proj_b", qwen.value_heads, hidden);
    model.linear(prefix + "in_proj_a", qwen.value_heads, hidden);
  } else {
    model.linear(prefix + "in_proj_qkvz", 2 * keys + 2 * values, hidden);
    model.linear(prefix + "in_proj_ba", 2 * qwen.value_heads, hidden);
  }
  model.linear(prefix + "out_proj", hidden, values);
}

// Qwen3-Next has its experts one by one, Qwen3.5 in stacks until they are quantized.
void qwen_mlp(ModelBuilder& model, const std::string& prefix, const Qwen& qwen, bool sparse) {
  if (!sparse) {
    model.gated_mlp(prefix, model.numbers().size("intermediate_size"));
    return;
  }
  model.linear(prefix + "gate", qwen.experts, model.hidden());
  if (qwen.split_projections && !model.quantized()) {
    model.expert_stacks(prefix, qwen.experts, qwen.expert_intermediate, false, false);
  } else {
    model.experts(prefix, qwen.experts, qwen.expert_intermediate);
  }
  model.gated_mlp(prefix + "shared_expert.", qwen.shared_intermediate);
  model.linear(prefix + "shared_expert_gate", 1, model.hidden());
}

void qwen_layers(ModelBuilder& model, const std::string& layers_name, const Qwen& qwen) {
  ConfigNumbers& numbers = model.numbers();
  const int64_t layers = numbers.count("num_hidden_layers"), interval = numbers.size("full_attention_interval", 4);
  const std::vector<std::string> types = numbers.words("layer_types", layers);
  for (int64_t i = 0; i < layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix(layers_name, i);
    const std::string type = !types.empty()            ? types[static_cast<size_t>(i)]
                             : (i + 1) % interval == 0 ? "full_attention"
                                                       : "linear_attention";
    if (type == "full_attention") {
      model.attention(layer + "self_attn.", qwen.attention);
    } else if (type == "linear_attention") {
      linear_attention(model, layer + "linear_attn.", qwen);
    } else {
      numbers.fail("layer_types", "\"" + printable(type, 40) + "\"", "full_attention or linear_attention");
    }
    const bool dense = std::find(qwen.dense_layers.begin(), qwen.dense_layers.end(), i) != qwen.dense_layers.end();
    qwen_mlp(model, layer + "mlp.", qwen, qwen.experts > 0 && (i + 1) % qwen.step == 0 && !dense);
  }
}

// ---- Nemotron-H -----------------------------------------------------------------------------------------------------

struct Mamba {
  int64_t heads = 0, head_dim = 0, groups = 0, state = 0;
  bool bias = false;
};
Mamba read_mamba(ConfigNumbers& numbers) {
  Mamba mamba;
  mamba.heads = numbers.count("mamba_num_heads");
  mamba.head_dim = numbers.size("mamba_head_dim");
  mamba.groups = numbers.count("n_groups");
  mamba.state = numbers.size("ssm_state_size");
  mamba.bias = numbers.flag("mamba_proj_bias", numbers.flag("use_bias", false));
  return mamba;
}

// Gate and input of the inner width, B and C of each group, and a step width per head.
void add_mamba(ModelBuilder& model, const std::string& mixer, const Mamba& mamba) {
  const int64_t inner = mamba.heads * mamba.head_dim;
  model.linear(mixer + "in_proj", 2 * inner + 2 * mamba.groups * mamba.state + mamba.heads, model.hidden(), mamba.bias);
  model.linear(mixer + "out_proj", model.hidden(), inner, mamba.bias);
}

// Without gates: up_proj and down_proj.
void plain_mlp(ModelBuilder& model, const std::string& prefix, int64_t intermediate, int64_t width, bool bias) {
  model.linear(prefix + "up_proj", intermediate, width, bias);
  model.linear(prefix + "down_proj", width, intermediate, bias);
}

// Routed experts may work in a smaller space between two projections.
void nemotron_experts(ModelBuilder& model, const std::string& mixer, bool bias) {
  ConfigNumbers& numbers = model.numbers();
  const int64_t experts = numbers.count("n_routed_experts"), intermediate = numbers.size("moe_intermediate_size");
  const int64_t hidden = model.hidden(), latent = numbers.size("moe_latent_size", hidden);
  model.linear(mixer + "gate", experts, hidden);
  const int64_t added = model.experts_to_add(mixer + "experts", experts);
  for (int64_t e = 0; e < added && !model.failed(); ++e)
    plain_mlp(model, mixer + "experts." + std::to_string(e) + ".", intermediate, latent, bias);
  if (numbers.count("n_shared_experts", 1) > 0)
    plain_mlp(model, mixer + "shared_experts.", numbers.size("moe_shared_expert_intermediate_size"), hidden, bias);
  if (numbers.find("moe_latent_size") != nullptr) {
    model.linear(mixer + "fc1_latent_proj", latent, hidden, bias);
    model.linear(mixer + "fc2_latent_proj", hidden, latent, bias);
  }
}

// One letter a layer: M Mamba, * attention, - multilayer perceptron, E experts.
std::string layer_letters(ConfigNumbers& numbers) {
  const int64_t layers = numbers.count("num_hidden_layers");
  const Json* pattern = numbers.find("hybrid_override_pattern");
  const std::string letters = pattern != nullptr ? pattern->string : "";
  if (static_cast<int64_t>(letters.size()) == layers && letters.find_first_not_of("M*-E") == std::string::npos)
    return letters;
  numbers.fail("hybrid_override_pattern", pattern == nullptr ? "no such key" : "\"" + printable(letters, 80) + "\"",
               std::to_string(layers) + " letters of M, *, - and E, one a layer");
  return "";
}

}  // namespace

void qwen3_next(ModelBuilder& model) {
  qwen_layers(model, "model.layers", read_qwen(model));
  model.embedding_and_head("model.embed_tokens", "lm_head", model.config().tied_head);
}

void qwen3_5(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  Qwen qwen = read_qwen(model);
  qwen.split_projections = true;
  const std::string root = is_wrapped(model) ? "model.language_model." : "model.";
  qwen_layers(model, root + "layers", qwen);
  model.draft(true);
  const int64_t drafts = numbers.count("mtp_num_hidden_layers", 0);
  for (int64_t i = 0; i < drafts && !model.failed(); ++i) {
    const std::string layer = layer_prefix("mtp.layers", i);
    model.attention(layer + "self_attn.", qwen.attention);
    qwen_mlp(model, layer + "mlp.", qwen, qwen.experts > 0);
  }
  if (drafts > 0) model.linear("mtp.fc", model.hidden(), 2 * model.hidden());
  model.draft(false);
  model.embedding_and_head(root + "embed_tokens", "lm_head", model.config().tied_head);
  qwen_tower(model);
}

void nemotron_h(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  const std::string letters = layer_letters(numbers);
  const auto has = [&](char letter) { return letters.find(letter) != std::string::npos; };
  const Mamba mamba = has('M') ? read_mamba(numbers) : Mamba{};
  ModelBuilder::Attention attention;
  if (has('*')) {
    attention = usual_attention(model, numbers.size("attention_head_dim", 128));
    attention.qkv_bias = attention.output_bias = numbers.flag("attention_bias", false);
  }
  const bool bias = numbers.flag("mlp_bias", false);
  for (size_t i = 0; i < letters.size() && !model.failed(); ++i) {
    const std::string mixer = layer_prefix("backbone.layers", static_cast<int64_t>(i)) + "mixer.";
    switch (letters[i]) {
      case 'M':
        add_mamba(model, mixer, mamba);
        break;
      case '*':
        model.attention(mixer, attention);
        break;
      case '-':
        plain_mlp(model, mixer, numbers.size("intermediate_size"), model.hidden(), bias);
        break;
      default:
        nemotron_experts(model, mixer, bias);
    }
  }
  model.embedding_and_head("backbone.embeddings", "lm_head", model.config().tied_head);
}

}  // namespace gearshift::architecture
