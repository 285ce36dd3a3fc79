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
