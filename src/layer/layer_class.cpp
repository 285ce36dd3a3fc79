#include <fmt/format.h>

#include "gearshift/layer.h"

namespace gearshift {
namespace {

// Appends words separated by spaces; numbers as decimal text.
class Key {
 public:
  Key& word(std::string_view text) {
    if (!text_.empty()) text_ += ' ';
    text_ += text;
    return *this;
  }
  Key& number(std::string_view label, int64_t value) { return word(std::string(label) + std::to_string(value)); }
  Key& flag(std::string_view label, bool value) { return value ? word(label) : *this; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_scheme(const Scheme& scheme, Key* key) {
  const WeightScheme& weight = scheme.weight;
  key->word(name(weight.format)).word(name(weight.storage));
  if (scheme.quantized) {
    key->word(name(weight.grouping.kind)).number("", weight.grouping.rows).number("x", weight.grouping.cols);
    key->word(name(weight.scale)).flag("zero_points", !weight.symmetric).flag("global", weight.global_scale);
    key->flag("divides", weight.global_divides).flag("act_order", weight.act_order).flag("pre_scale", scheme.pre_scale);
  }
  if (!scheme.activation) return;
  const ActivationScheme& activation = *scheme.activation;
  key->word("a:").word(name(activation.format)).word(name(activation.granularity)).number("", activation.group);
  key->flag("dynamic", activation.dynamic)
      .flag("zero_point", !activation.symmetric)
      .flag("stored", activation.stored_scale);
  key->flag("multiplies", activation.stored_multiplies).number("rule", static_cast<int64_t>(activation.rule));
  if (activation.amax_limit > 0) key->word(fmt::format("limit{}", activation.amax_limit));
}

}  // namespace

std::string layer_class(const LayerSpec& layer) {
  Key key;
  key.word(name(layer.family)).number("n", layer.n).number("k", layer.k);
  const size_t parts = layer.kind == LayerKind::experts && layer.experts > 0 && !layer.stacked
                           ? layer.modules.size() / static_cast<size_t>(layer.experts)
                           : layer.modules.size();
  if (parts > 1) {
    for (size_t i = 0; i < parts; ++i) key.number("+", layer.modules[i].n);
  }
  add_scheme(layer.scheme, &key);
  if (!layer.modules.empty()) {
    for (const StoredTensor& tensor : layer.modules.front().tensors) {
      if (tensor.role == TensorRole::weight) key.word("w:").word(name(tensor.dtype));
      if (tensor.role == TensorRole::weight_zero_point) key.word("z:").word(name(tensor.dtype));
    }
  }
  key.flag("bias", layer.bias).flag("interleaved", layer.row_order == RowOrder::interleaved);
  if (layer.kind == LayerKind::experts) key.number("experts", layer.experts).flag("stacked", layer.stacked);
  // A shard whose scale tiles begin with it is like any other layer of its shape.
  if (layer.shard && layer.shard->offset) key.word("shard_offset");
  if (layer.shard && layer.shard->split == Split::row && layer.scheme.weight.act_order)
    key.number("scales_of_k", layer.shard->whole->k);
  return key.take();
}

}  // namespace gearshift
