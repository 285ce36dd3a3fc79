// Decoders whose layers are all alike: attention and one multilayer perceptron.
#include "layer/architecture/architecture.h"

namespace gearshift::architecture {
namespace {

// What differs between them.
struct Dense {
  std::string root = "model.", head = "lm_head";
  ModelBuilder::Attention attention;
  bool mlp_bias = false;
  bool tied = false;
  int64_t vocabulary = 0;  // where the config doesn't say; 0: it must
};

void dense_decoder(ModelBuilder& model, const Dense& dense) {
  ConfigNumbers& numbers = model.numbers();
  const int64_t layers = numbers.count("num_hidden_layers"), intermediate = numbers.size("intermediate_size");
  for (int64_t i = 0; i < layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix(dense.root + "layers", i);
    model.attention(layer + "self_attn.", dense.attention);
    model.gated_mlp(layer + "mlp.", intermediate, dense.mlp_bias);
  }
  model.embedding_and_head(dense.root + "embed_tokens", dense.head, dense.tied, dense.vocabulary);
}

void llama_at(ModelBuilder& model, Dense dense) {
  dense.attention = usual_attention(model);
  dense.attention.qkv_bias = dense.attention.output_bias = model.numbers().flag("attention_bias", false);
  dense.mlp_bias = model.numbers().flag("mlp_bias", false);
  dense.tied = model.config().tied_head;
  dense_decoder(model, dense);
}

}  // namespace

void llama(ModelBuilder& model) { llama_at(model, {}); }

void mistral3(ModelBuilder& model) {
  Dense dense;
  dense.root = "language_model.model.";
  dense.head = "language_model.lm_head";
  llama_at(model, dense);
  pixtral_tower(model);
}

void qwen2(ModelBuilder& model) {
  Dense dense;
  dense.attention = usual_attention(model);
  dense.attention.qkv_bias = true;  // always, and never on the output
  dense.tied = model.config().tied_head;
  dense_decoder(model, dense);
}

void qwen3(ModelBuilder& model) {
  Dense dense;
  dense.attention = usual_attention(model, 128);
  dense.attention.qkv_bias = dense.attention.output_bias = model.numbers().flag("attention_bias", false);
  dense.tied = model.config().tied_head;
  dense_decoder(model, dense);
}

// Published configs leave out what has its default value.
void gemma3(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  Dense dense;
  if (is_wrapped(model)) {
    dense.root = "language_model.model.";
    dense.head = "language_model.lm_head";
  }
  dense.attention.heads = numbers.count("num_attention_heads", 8);
  dense.attention.key_value_heads = numbers.count("num_key_value_heads", 4);
  dense.attention.head_dim = numbers.size("head_dim", 256);
  dense.attention.qkv_bias = dense.attention.output_bias = numbers.flag("attention_bias", false);
  dense.tied = numbers.flag("tie_word_embeddings", true);
  dense.vocabulary = 262208;
  dense_decoder(model, dense);
  siglip_tower(model);
}

namespace {

// What some models of the family have beside attention and a perceptron; their tensors are not known here.
bool has_more_than_decoders(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  std::string found;
  if (numbers.flag("enable_moe_block", false)) found = "enable_moe_block";
  if (numbers.count("hidden_size_per_layer_input", 0) > 0) found = "hidden_size_per_layer_input";
  if (numbers.count("num_kv_shared_layers", 0) > 0) found = "num_kv_shared_layers";
  if (model.config().config->find("audio_config") != nullptr && !model.config().config->find("audio_config")->is_null())
    found = "audio_config";
  if (found.empty() || model.failed()) return false;
  model.fail({ErrorCode::unsupported_scheme,
              "config.json: " + found,
              "a Gemma 4 with it",
              "a dense one without tensors",
              "with the head of each safetensors file beside the config it can be planned",
              {}});
  return true;
}

}  // namespace

// Every sixth layer or so sees everything, with heads of its own size; their values can be their keys.
void gemma4(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  if (has_more_than_decoders(model)) return;
  ModelBuilder::Attention sliding = usual_attention(model);
  sliding.qkv_bias = sliding.output_bias = numbers.flag("attention_bias", false);
  ModelBuilder::Attention full = sliding;
  full.head_dim = numbers.size("global_head_dim", sliding.head_dim);
  full.key_value_heads = numbers.count("num_global_key_value_heads", sliding.key_value_heads);
  full.keys_are_values = numbers.flag("attention_k_eq_v", false);
  const int64_t layers = numbers.count("num_hidden_layers"), intermediate = numbers.size("intermediate_size");
  const std::vector<std::string> types = numbers.words("layer_types", layers);
  if (types.empty()) numbers.fail("layer_types", "no such key", "one word a layer");
  for (int64_t i = 0; i < layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix("model.language_model.layers", i);
    model.attention(layer + "self_attn.", types[static_cast<size_t>(i)] == "full_attention" ? full : sliding);
    model.gated_mlp(layer + "mlp.", intermediate);
  }
  model.embedding_and_head("model.language_model.embed_tokens", "lm_head", model.config().tied_head);
  gemma4_tower(model);
}

// Queries, keys and values stored as one, gate and up as one.
void phi3(ModelBuilder& model) {
  ConfigNumbers& numbers = model.numbers();
  const ModelBuilder::Attention attention = usual_attention(model);
  const int64_t q = attention.heads * attention.head_dim, kv = attention.key_value_heads * attention.head_dim;
  const int64_t layers = numbers.count("num_hidden_layers"), intermediate = numbers.size("intermediate_size");
  for (int64_t i = 0; i < layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix("model.layers", i);
    model.linear(layer + "self_attn.qkv_proj", q + 2 * kv, model.hidden());
    model.linear(layer + "self_attn.o_proj", model.hidden(), q);
    model.linear(layer + "mlp.gate_up_proj", 2 * intermediate, model.hidden());
    model.linear(layer + "mlp.down_proj", model.hidden(), intermediate);
  }
  model.embedding_and_head("model.embed_tokens", "lm_head", model.config().tied_head);
}

}  // namespace gearshift::architecture
