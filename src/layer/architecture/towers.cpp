// Vision towers beside a language model: their encoders and the projection into the language model's hidden state.
#include "base/try.h"
#include "layer/architecture/architecture.h"

namespace gearshift::architecture {
namespace {

// The tower's sizes; nullptr: the model has none. What is wrong with them fails the model.
const Json* vision_config(const ModelBuilder& model) {
  const Json* vision = model.config().config->find("vision_config");
  return vision != nullptr && vision->is(Json::Kind::object) ? vision : nullptr;
}
ConfigNumbers vision_numbers(const Json* vision) { return {vision, nullptr, "config.json: vision_config."}; }

}  // namespace

void siglip_tower(ModelBuilder& model) {
  const Json* vision = vision_config(model);
  if (vision == nullptr) return;
  ConfigNumbers numbers = vision_numbers(vision);
  const int64_t layers = numbers.count("num_hidden_layers"), hidden = numbers.size("hidden_size");
  const int64_t intermediate = numbers.size("intermediate_size");
  if (numbers.failed()) return model.fail(numbers.error());
  for (int64_t i = 0; i < layers && !model.failed(); ++i) {
    const std::string layer = layer_prefix("vision_tower.vision_model.encoder.layers", i);
    for (const char* projection : {"k_proj", "v_proj", "q_proj", "out_proj"})
      model.linear(layer + "self_attn." + projection, hidden, hidden, true);
    model.linear(layer + "mlp.fc1", intermediate, hidden, true);
    model.linear(layer + "mlp.fc2", hidden, intermediate, true);
  }
}

void pixtral_tower(ModelBuilder& model) {
  const Json* vision = vision_config(model);
  if (vision == nullptr) return;
  ConfigNumbers numbers = vision_numbers(vision);
  const int64_t layers = numbers.count("num_hidden_layers"), hidden = numbers.size("hidden_size");
  const int64_t intermediate = numbers.size("intermediate_size");
  if (numbers.failed()) return model.fail(numbers.error());
  for (int64_t i = 0; i < layers && !model.failed(); ++i) {
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

void qwen_tower(ModelBuilder& model) {
  const Json* vision = vision_config(model);
  if (vision == nullptr) return;
  ConfigNumbers numbers = vision_numbers(vision);
  const int64_t layers = numbers.count("depth"), hidden = numbers.size("hidden_size");
  const int64_t intermediate = numbers.size("intermediate_size"), out = numbers.size("out_hidden_size");
  const int64_t merge = numbers.count("spatial_merge_size", 2), merged = hidden * merge * merge;
  const int64_t deep = static_cast<int64_t>(numbers.numbers("deepstack_visual_indexes").size());
  if (numbers.failed()) return model.fail(numbers.error());
  for (int64_t i = 0; i < layers && !model.failed(); ++i) {
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
