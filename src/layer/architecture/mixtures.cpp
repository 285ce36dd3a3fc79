// Decoders with grouped-query attention and routed experts.
#include <algorithm>

#include "layer/architecture/architecture.h"

namespace gearshift::architecture {
namespace {

// Multi-token prediction as DeepSeek and GLM store it: one more decoder layer behind the others, with the projection of
// [hidden, embedding], an embedding and a head of its own.
template <class Layer>
void draft_layers(ModelBuilder& model, const std::string& root, int64_t first, int64_t count, const Layer& add_layer) {
  model.draft(true);
  const int64_t vocabulary = count > 0 ? model.numbers().size("vocab_size") : 1;
  for (int64_t i = first; i < first + count && !model.failed(); ++i) {
    const std::string layer = layer_prefix(root + "model.layers", i);
    add_layer(layer, i);
    model.linear(layer + "eh_proj", model.hidden(), 2 * model.hidden());
    model.linear(layer + "embed_tokens", vocabulary, model.hidden());
    model.linear(layer + "shared_head.head", vocabulary, model.hidden());
  }
  model.draft(false);
}

// Experts from `first_dense` on, in every `frequency`-th layer, beside experts that all tokens use.
struct DeepseekExperts {
  int64_t intermediate = 0, dense_layers = 0, frequency = 1;
  int64_t routed = 0, shared = 0, expert_intermediate = 1;
};

DeepseekExperts deepseek_experts(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  DeepseekExperts experts;
  experts.intermediate = numbers.size("intermediate_size");
  experts.routed = numbers.count("n_routed_experts", 0);
  if (experts.routed == 0) return experts;
  experts.expert_intermediate = numbers.size("moe_intermediate_size");
  experts.shared = numbers.count("n_shared_experts", 0);
  experts.dense_layers = numbers.count("first_k_dense_replace", 0);
  experts.frequency = numbers.size("moe_layer_freq", 1);
  return experts;
}

void deepseek_mlp(ModelBuilder& model, const std::string& prefix, int64_t index, const DeepseekExperts& experts) {
  if (experts.routed == 0 || index < experts.dense_layers || index % experts.frequency != 0) {
    model.gated_mlp(prefix, experts.intermediate);
    return;
  }
  model.linear(prefix + "gate", experts.routed, model.hidden());
  model.experts(prefix, experts.routed, experts.expert_intermediate);
  if (experts.shared > 0) model.gated_mlp(prefix + "shared_experts.", experts.shared * experts.expert_intermediate);
}

// Queries through a low rank (or not), keys and values through one compressed vector and a shared rotary part.
struct LatentAttention {
  int64_t heads = 0, query_rank = 0, rank = 0, nope = 0, rope = 0, value = 0;
  bool bias = false;
};

LatentAttention latent_attention(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  LatentAttention attention;
  attention.heads = numbers.count("num_attention_heads");
  if (numbers.find("q_lora_rank") != nullptr) attention.query_rank = numbers.size("q_lora_rank");
  attention.rank = numbers.size("kv_lora_rank");
  attention.nope = numbers.size("qk_nope_head_dim");
  attention.rope = numbers.size("qk_rope_head_dim");
  attention.value = numbers.size("v_head_dim");
  attention.bias = numbers.flag("attention_bias", false);
  return attention;
}

void add_latent_attention(ModelBuilder& model, const std::string& prefix, const LatentAttention& attention) {
  const int64_t hidden = model.hidden(), queries = attention.heads * (attention.nope + attention.rope);
  if (attention.query_rank > 0) {
    model.linear(prefix + "q_a_proj", attention.query_rank, hidden, attention.bias);
    model.linear(prefix + "q_b_proj", queries, attention.query_rank);
  } else {
    model.linear(prefix + "q_proj", queries, hidden);
  }
  model.linear(prefix + "kv_a_proj_with_mqa", attention.rank + attention.rope, hidden, attention.bias);
  model.linear(prefix + "kv_b_proj", attention.heads * (attention.nope + attention.value), attention.rank);
  model.linear(prefix + "o_proj", hidden, attention.heads * attention.value, attention.bias);
}

}  // namespace

namespace {

// `root` stands before the names of the language model.
void latent_decoder(ModelBuilder& model, const std::string& root) {
  ConfigNumbers& numbers = model.numbers();
  const int64_t layers = numbers.count("num_hidden_layers"), drafts = numbers.count("num_nextn_predict_layers", 0);
  const DeepseekExperts experts = deepseek_experts(model);
  const LatentAttention attention = latent_attention(model);
  const auto add_layer = [&](const std::string& layer, int64_t index) {
    add_latent_attention(model, layer + "self_attn.", attention);
    deepseek_mlp(model, layer + "mlp.", index, experts);
  };
  for (int64_t i = 0; i < layers && !model.failed(); ++i) add_layer(layer_prefix(root + "model.layers", i), i);
  draft_layers(model, root, layers, drafts, add_layer);
  model.embedding_and_head(root + "model.embed_tokens", root + "lm_head", model.config().tied_head);
}

}  // namespace

void deepseek(ModelBuilder& model) { latent_decoder(model, ""); }

void kimi_k25(ModelBuilder& model) {
  latent_decoder(model, "language_model.");
  moonvit_tower(model);
}

void glm4_moe(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  const int64_t layers = numbers.count("num_hidden_layers"), drafts = numbers.count("num_nextn_predict_layers", 0);
  const DeepseekExperts experts = deepseek_experts(model);
  ModelBuilder::Attention attention = usual_attention(model);
  attention.qkv_bias = numbers.flag("attention_bias", false);
  const auto add_layer = [&](const std::string& layer, int64_t index) {
    model.attention(layer + "self_attn.", attention);
    deepseek_mlp(model, layer + "mlp.", index, experts);
  };
  for (int64_t i = 0; i < layers && !model.failed(); ++i) add_layer(layer_prefix("model.layers", i), i);
  draft_layers(model, "", layers, drafts, add_layer);
  model.embedding_and_head("model.embed_tokens", "lm_head", model.config().tied_head);
}

void qwen3_moe(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  ModelBuilder::Attention attention = usual_attention(model);
  attention.qkv_bias = attention.output_bias = numbers.flag("attention_bias", false);
  const int64_t layers = numbers.count("num_hidden_layers"), experts = numbers.count("num_experts", 0);
  const int64_t step = numbers.size("decoder_sparse_step", 1);
  const std::vector<int64_t> dense = numbers.numbers("mlp_only_layers");
  const auto is_sparse = [&](int64_t i) {
    return experts > 0 && (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
  };
  for (int64_t i = 0; i < layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix("model.layers", i);
    model.attention(layer + "self_attn.", attention);
    if (is_sparse(i)) {
      model.linear(layer + "mlp.gate", experts, model.hidden());
      model.experts(layer + "mlp.", experts, numbers.size("moe_intermediate_size"));
    } else {
      model.gated_mlp(layer + "mlp.", numbers.size("intermediate_size"));
    }
  }
  model.embedding_and_head("model.embed_tokens", "lm_head", model.config().tied_head);
}

// w1 is the gate, w3 up and w2 down. MiniMax-M2 has the same modules.
void mixtral(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  const ModelBuilder::Attention attention = usual_attention(model);
  const int64_t layers = numbers.count("num_hidden_layers"), experts = numbers.count("num_local_experts");
  const int64_t intermediate = numbers.size("intermediate_size"), hidden = model.hidden();
  for (int64_t i = 0; i < layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix("model.layers", i);
    model.attention(layer + "self_attn.", attention);
    model.linear(layer + "block_sparse_moe.gate", experts, hidden);
    const int64_t added = model.experts_to_add(layer + "block_sparse_moe.experts", experts);
    for (int64_t e = 0; e < added && !model.failed(); ++e) {
      const std::string expert = layer + "block_sparse_moe.experts." + std::to_string(e) + ".";
      model.linear(expert + "w1", intermediate, hidden);
      model.linear(expert + "w2", hidden, intermediate);
      model.linear(expert + "w3", intermediate, hidden);
    }
  }
  model.embedding_and_head("model.embed_tokens", "lm_head", model.config().tied_head);
}

// Experts are stacks, in the float checkpoint and in MXFP4; other writers take them apart.
void gpt_oss(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  ModelBuilder::Attention attention = usual_attention(model, 64);
  attention.qkv_bias = attention.output_bias = numbers.flag("attention_bias", true);
  const int64_t layers = numbers.count("num_hidden_layers"), experts = numbers.count("num_local_experts");
  const int64_t intermediate = numbers.size("intermediate_size");
  const bool stacks = !model.quantized() || model.config().quant.method == "mxfp4";
  for (int64_t i = 0; i < layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix("model.layers", i);
    model.attention(layer + "self_attn.", attention);
    model.linear(layer + "mlp.router", experts, model.hidden(), true);
    if (stacks) {
      model.expert_stacks(layer + "mlp.", experts, intermediate, true, !model.quantized());
    } else {
      model.experts(layer + "mlp.", experts, intermediate, true);
    }
  }
  model.embedding_and_head("model.embed_tokens", "lm_head", model.config().tied_head);
}

}  // namespace gearshift::architecture
