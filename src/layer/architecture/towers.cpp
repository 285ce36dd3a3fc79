// Vision towers beside a language model: their encoders and the projection into the language model's hidden state.
#include <algorithm>

#include "layer/architecture/architecture.h"

namespace gearshift::architecture {
namespace {

// Of one direction; more is no picture any more.
constexpr int64_t kMostMergedPatches = 64;

// What every tower has.
struct Encoder {
  ConfigNumbers numbers;  // of vision_config
  int64_t layers = 0, hidden = 0, intermediate = 0;
};

// nullopt: the model has no tower, or its config has failed it. `layers`: the key of their number; `sizes` stands
// before those of the two sizes.
std::optional<Encoder> encoder_of(ModelBuilder& model, std::string_view layers, const std::string& sizes = "") {
  const Json* vision = model.config().config->find("vision_config");
  if (vision == nullptr || !vision->is(Json::Kind::object)) return std::nullopt;
  Encoder encoder{ConfigNumbers(vision, nullptr, "config.json: vision_config.")};
  encoder.layers = encoder.numbers.count(layers);
  encoder.hidden = encoder.numbers.size(sizes + "hidden_size");
  encoder.intermediate = encoder.numbers.size(sizes + "intermediate_size");
  if (!encoder.numbers.failed()) return encoder;
  model.fail(encoder.numbers.error());
  return std::nullopt;
}

}  // namespace

void siglip_tower(ModelBuilder& model) {
  const std::optional<Encoder> encoder = encoder_of(model, "num_hidden_layers");
  if (!encoder) return;
  const int64_t hidden = encoder->hidden, intermediate = encoder->intermediate;
  for (int64_t i = 0; i < encoder->layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix("vision_tower.vision_model.encoder.layers", i);
    for (const char* projection : {"k_proj", "v_proj", "q_proj", "out_proj"})
      model.linear(layer + "self_attn." + projection, hidden, hidden, true);
    model.linear(layer + "mlp.fc1", intermediate, hidden, true);
    model.linear(layer + "mlp.fc2", hidden, intermediate, true);
  }
}

void pixtral_tower(ModelBuilder& model) {
  const std::optional<Encoder> encoder = encoder_of(model, "num_hidden_layers");
  if (!encoder) return;
  const int64_t hidden = encoder->hidden, intermediate = encoder->intermediate;
  for (int64_t i = 0; i < encoder->layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix("vision_tower.transformer.layers", i);
    for (const char* projection : {"k_proj", "o_proj", "q_proj", "v_proj"})
      model.linear(layer + "attention." + projection, hidden, hidden);
    model.linear(layer + "feed_forward.gate_proj", intermediate, hidden);
    model.linear(layer + "feed_forward.up_proj", intermediate, hidden);
    model.linear(layer + "feed_forward.down_proj", hidden, intermediate);
  }
  const bool bias = model.numbers().flag("multimodal_projector_bias", false);
  const int64_t merged = model.numbers().count("spatial_merge_size", 2);
  model.linear("multi_modal_projector.patch_merger.merging_layer", hidden, hidden * merged * merged);
  model.linear("multi_modal_projector.linear_1", model.hidden(), hidden, bias);
  model.linear("multi_modal_projector.linear_2", model.hidden(), model.hidden(), bias);
}

// Every projection is a clippable one, whose weight is that of a module within.
void gemma4_tower(ModelBuilder& model) {
  std::optional<Encoder> encoder = encoder_of(model, "num_hidden_layers");
  if (!encoder) return;
  const int64_t hidden = encoder->hidden, intermediate = encoder->intermediate;
  const int64_t patch = encoder->numbers.size("patch_size", 16);
  if (encoder->numbers.failed()) return model.fail(encoder->numbers.error());
  model.linear("model.vision_tower.patch_embedder.input_proj", hidden, 3 * patch * patch);
  for (int64_t i = 0; i < encoder->layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix("model.vision_tower.encoder.layers", i);
    for (const char* projection : {"q_proj", "k_proj", "v_proj", "o_proj"})
      model.linear(layer + "self_attn." + projection + ".linear", hidden, hidden);
    model.linear(layer + "mlp.gate_proj.linear", intermediate, hidden);
    model.linear(layer + "mlp.up_proj.linear", intermediate, hidden);
    model.linear(layer + "mlp.down_proj.linear", hidden, intermediate);
  }
  model.linear("model.embed_vision.embedding_projection", model.hidden(), hidden);
}

void moonvit_tower(ModelBuilder& model) {
  std::optional<Encoder> encoder = encoder_of(model, "vt_num_hidden_layers", "vt_");
  if (!encoder) return;
  const int64_t hidden = encoder->hidden, intermediate = encoder->intermediate;
  int64_t merged = hidden;
  for (const int64_t patches : encoder->numbers.numbers("merge_kernel_size"))
    merged *= std::clamp<int64_t>(patches, 1, kMostMergedPatches);
  if (encoder->numbers.failed()) return model.fail(encoder->numbers.error());
  for (int64_t i = 0; i < encoder->layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix("vision_tower.encoder.blocks", i);
    model.linear(layer + "wqkv", 3 * hidden, hidden, true);
    model.linear(layer + "wo", hidden, hidden, true);
    model.linear(layer + "mlp.fc0", intermediate, hidden, true);
    model.linear(layer + "mlp.fc1", hidden, intermediate, true);
  }
  model.linear("mm_projector.proj.0", merged, merged, true);
  model.linear("mm_projector.proj.2", model.hidden(), merged, true);
}

void qwen_tower(ModelBuilder& model) {
  std::optional<Encoder> encoder = encoder_of(model, "depth");
  if (!encoder) return;
  ConfigNumbers& numbers = encoder->numbers;
  const int64_t hidden = encoder->hidden, intermediate = encoder->intermediate, out = numbers.size("out_hidden_size");
  const int64_t merge = numbers.count("spatial_merge_size", 2), merged = hidden * merge * merge;
  const int64_t deep = static_cast<int64_t>(numbers.numbers("deepstack_visual_indexes").size());
  if (numbers.failed()) return model.fail(numbers.error());
  for (int64_t i = 0; i < encoder->layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix("model.visual.blocks", i);
    model.linear(layer + "attn.qkv", 3 * hidden, hidden, true);
    model.linear(layer + "attn.proj", hidden, hidden, true);
    model.linear(layer + "mlp.linear_fc1", intermediate, hidden, true);
    model.linear(layer + "mlp.linear_fc2", hidden, intermediate, true);
  }
  const auto add_merger = [&](const std::string& prefix) {
    model.linear(prefix + "linear_fc1", merged, merged, true);
    model.linear(prefix + "linear_fc2", out, merged, true);
  };
  add_merger("model.visual.merger.");
  for (int64_t i = 0; i < deep && !model.failed(); ++i)
    add_merger(layer_prefix("model.visual.deepstack_merger_list", i));
}

}  // namespace gearshift::architecture
