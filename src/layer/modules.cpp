#include "layer/modules.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "base/text.h"

namespace gearshift {
namespace {

// Tensors that only quantized modules have (formats.md section 1). `scale` and `scales` are not here: activations and
// norms have them, too.
constexpr std::array<std::string_view, 32> kQuantizationSuffixes = {"weight_packed",
                                                                    "weight_scale",
                                                                    "weight_scale_inv",
                                                                    "weight_scale_2",
                                                                    "weight_global_scale",
                                                                    "weight_zero_point",
                                                                    "weight_g_idx",
                                                                    "weight_shape",
                                                                    "input_scale",
                                                                    "input_scale_2",
                                                                    "activation_scale",
                                                                    "input_global_scale",
                                                                    "input_zero_point",
                                                                    "pre_quant_scale",
                                                                    "svdquant_lora_a",
                                                                    "svdquant_lora_b",
                                                                    "qweight",
                                                                    "qzeros",
                                                                    "g_idx",
                                                                    "blocks",
                                                                    "B",
                                                                    "SCB",
                                                                    "trellis",
                                                                    "suh",
                                                                    "svh",
                                                                    "W_q",
                                                                    "q_weight",
                                                                    "q_scale_max",
                                                                    "q_groups",
                                                                    "q_invperm",
                                                                    "weight.absmax",
                                                                    "weight.quant_map"};

// Suffixes of the tensor that holds a module's codes.
constexpr std::array<std::string_view, 8> kWeightSuffixes = {"weight", "weight_packed", "qweight", "blocks",
                                                             "B",      "trellis",       "W_q",     "q_weight"};

// Expert stacks whose tensors hang off the parent: stem, then one of these endings. "" is the weight itself.
constexpr std::array<std::string_view, 8> kStackStems = {"gate_up_proj", "gate_proj", "down_proj", "up_proj",
                                                         "w13",          "w1",        "w2",        "w3"};
struct Ending {
  std::string_view ending, suffix;
};
constexpr std::array kStackEndings = {
    Ending{"", "weight"},
    Ending{"_weight", "weight"},
    Ending{"_blocks", "blocks"},
    Ending{"_scales", "scales"},
    Ending{"_bias", "bias"},
    Ending{"_scale_inv", "weight_scale_inv"},
    Ending{"_weight_scale_inv", "weight_scale_inv"},
    Ending{"_scale", "weight_scale"},
    Ending{"_weight_scale", "weight_scale"},
    Ending{"_weight_scale_2", "weight_scale_2"},
    Ending{"_input_scale", "input_scale"},
    Ending{"_activation_scale", "activation_scale"},
    Ending{"_weight_packed", "weight_packed"},
    Ending{"_packed", "weight_packed"},
    Ending{"_weight_global_scale", "weight_global_scale"},
    Ending{"_input_global_scale", "input_global_scale"},
};

bool is_stack_container(std::string_view component) { return component == "experts" || component == "moe"; }

constexpr std::array kFusedNames = {
    FusedName{"qkv_proj", {"q_proj", "k_proj", "v_proj"}},
    FusedName{"qkv", {"query", "key", "value"}},
    FusedName{"gate_up_proj", {"gate_proj", "up_proj", ""}},
    FusedName{"w13", {"w1", "w3", ""}},
};

struct Place {
  std::string_view module, suffix;
  bool raw_stack = false;
};

// Which module a tensor belongs to, by its name alone.
Place place_of(std::string_view tensor) {
  // bitsandbytes hangs its side tensors off the weight: x.weight.quant_state.bitsandbytes__nf4.
  if (const size_t at = tensor.find(".weight."); at != std::string_view::npos) {
    return {tensor.substr(0, at), tensor.substr(at + 1)};
  }
  constexpr std::string_view quantizer = ".weight_quantizer.";
  if (const size_t at = tensor.find(quantizer); at != std::string_view::npos) {
    return {tensor.substr(0, at), tensor.substr(at + quantizer.size())};
  }
  const std::string_view module = parent(tensor), suffix = last_component(tensor);
  if (is_stack_container(last_component(module))) {
    for (std::string_view stem : kStackStems) {
      if (!suffix.starts_with(stem)) continue;
      const std::string_view ending = suffix.substr(stem.size());
      for (const Ending& known : kStackEndings) {
        if (known.ending == ending) return {tensor.substr(0, module.size() + 1 + stem.size()), known.suffix, true};
      }
    }
  }
  return {module, suffix};
}

bool has_component(std::string_view name, std::string_view component) {
  for (size_t at = name.find(component); at != std::string_view::npos; at = name.find(component, at + 1)) {
    const size_t end = at + component.size();
    if ((at == 0 || name[at - 1] == '.') && (end == name.size() || name[end] == '.')) return true;
  }
  return false;
}

bool is_draft(std::string_view name, int64_t hidden_layers) {
  if (has_component(name, "mtp") || has_component(name, "mtp_layers")) return true;
  if (hidden_layers <= 0) return false;
  // The language model's own layers: `layers.N` without a tower or an encoder before it.
  for (std::string_view prefix : {"model.layers.", "model.language_model.layers.", "language_model.model.layers.",
                                  "layers.", "backbone.layers.", "language_model.layers."}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = name.substr(prefix.size());
    const std::optional<int64_t> number = parse_integer(rest.substr(0, rest.find('.')));
    return number && *number >= hidden_layers;
  }
  return false;
}

bool is_embedding(std::string_view last) {
  // A projection of embeddings (embedding_projection, embed_proj) is a linear layer.
  if (last.find("proj") != std::string_view::npos) return false;
  return last.find("embed") != std::string_view::npos || last == "wte" || last == "wpe";
}

bool is_norm(std::string_view last) { return last.find("norm") != std::string_view::npos; }

bool is_convolution(std::string_view last) {
  return last == "conv" || last.find("conv1d") != std::string_view::npos ||
         last.find("conv2d") != std::string_view::npos || last.find("conv3d") != std::string_view::npos;
}

// The embedding that a tied head shares: the language model's own, not a tower's or a draft layer's.
const ModuleTensors* token_embedding(const std::vector<ModuleTensors>& modules) {
  const ModuleTensors* best = nullptr;
  auto depth = [](const ModuleTensors& m) { return std::count(m.name.begin(), m.name.end(), '.'); };
  for (const ModuleTensors& module : modules) {
    const std::string_view last = last_component(module.name);
    const bool named = last == "embed_tokens" || last == "wte" || last == "tok_embeddings" || last == "embed" ||
                       (last == "word_embeddings" && last_component(parent(module.name)) != "embeddings");
    if (!named || module.draft || kind_of(module) != ModuleKind::matrix) continue;
    if (best == nullptr || depth(module) < depth(*best)) best = &module;
  }
  return best;
}

bool has_head(const std::vector<ModuleTensors>& modules) {
  return std::any_of(modules.begin(), modules.end(), [](const ModuleTensors& module) {
    const std::string_view last = last_component(module.name);
    const bool top =
        parent(module.name).empty() || parent(module.name) == "model" || parent(module.name) == "language_model";
    return !module.draft && (last == "lm_head" || (top && (last == "head" || last == "output")));
  });
}

// The only values that a plan looks at: the packed width alone leaves the number of columns open up to a word. A reader
// uses them where they fit the tensors; that they do is checked when weights are bound.
std::optional<std::pair<int64_t, int64_t>> stated_shape(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  const bool wide = tensor.dtype == DType::i64;
  if ((!wide && tensor.dtype != DType::i32) || tensor.shape != Shape{2}) return std::nullopt;
  const auto bytes = checkpoint.bytes(tensor);
  if (!bytes.ok()) return std::nullopt;
  const auto value = [&](size_t i) -> int64_t {
    int64_t number = 0;
    if (wide) {
      std::memcpy(&number, bytes->data() + 8 * i, 8);
    } else {
      int32_t narrow = 0;
      std::memcpy(&narrow, bytes->data() + 4 * i, 4);
      number = narrow;
    }
    return number;
  };
  return std::pair(value(0), value(1));
}

}  // namespace

const TensorInfo* ModuleTensors::find(std::string_view suffix) const {
  for (const auto& [own, tensor] : tensors) {
    if (own == suffix) return tensor;
  }
  return nullptr;
}

std::vector<ModuleTensors> group_modules(const Checkpoint& checkpoint, const ModelConfig& config) {
  std::vector<ModuleTensors> modules;
  std::unordered_map<std::string_view, size_t> index;
  index.reserve(checkpoint.tensors().size());
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const Place place = place_of(tensor.name);
    const auto [entry, fresh] = index.try_emplace(place.module, modules.size());
    if (fresh) {
      modules.emplace_back();
      modules.back().name = place.module;
      modules.back().draft = is_draft(place.module, config.hidden_layers);
    }
    ModuleTensors& module = modules[entry->second];
    module.tensors.emplace_back(place.suffix, &tensor);
    module.raw_stack = module.raw_stack || place.raw_stack;
    if (place.suffix == "weight_shape") module.stated = stated_shape(checkpoint, tensor);
  }
  if (config.tied_head && !has_head(modules)) {
    if (const ModuleTensors* embedding = token_embedding(modules); embedding != nullptr) {
      ModuleTensors head = *embedding;
      head.name = embedding->name.starts_with("language_model.") ? "language_model.lm_head" : "lm_head";
      head.tied_head = true;
      modules.push_back(std::move(head));
    }
  }
  // Tensors come in natural order, so that modules almost always do, too.
  const auto earlier = [](const ModuleTensors& a, const ModuleTensors& b) { return natural_less(a.name, b.name); };
  if (!std::is_sorted(modules.begin(), modules.end(), earlier))
    std::stable_sort(modules.begin(), modules.end(), earlier);
  return modules;
}

ModuleKind kind_of(const ModuleTensors& module) {
  const TensorInfo* codes = nullptr;
  for (std::string_view suffix : kWeightSuffixes) {
    if (codes == nullptr) codes = module.find(suffix);
  }
  if (module.tied_head) return ModuleKind::linear;
  const std::string_view last = last_component(module.name);
  if (codes == nullptr) {
    // Scales whose weight is missing are for the scheme to report; loose parameters with a matrix are no layers.
    for (const auto& [suffix, tensor] : module.tensors) {
      const bool of_weight = is_quantization_suffix(suffix) && suffix != "input_scale" && suffix != "activation_scale";
      const bool exponents = suffix == "scales" && !is_float(tensor->dtype) && tensor->shape.size() >= 2;
      if ((of_weight || exponents) && !is_embedding(last)) return ModuleKind::linear;
    }
    for (const auto& [suffix, tensor] : module.tensors) {
      if (is_float(tensor->dtype) && tensor->shape.size() >= 2 && suffix != "bias") return ModuleKind::matrix;
    }
    return ModuleKind::other;
  }
  const bool plain = is_float(codes->dtype) && is_plain_float(module);
  if (plain && codes->shape.size() < 2) return ModuleKind::other;
  if (is_embedding(last) || is_norm(last) || is_convolution(last)) return ModuleKind::matrix;
  if (plain && codes->shape.size() > 2) {
    const bool stack = codes->shape.size() == 3 && (module.raw_stack || has_component(module.name, "experts") ||
                                                    is_stack_container(last_component(parent(module.name))));
    return stack ? ModuleKind::linear : ModuleKind::matrix;
  }
  return ModuleKind::linear;
}

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

bool is_quantization_suffix(std::string_view suffix) {
  return std::find(kQuantizationSuffixes.begin(), kQuantizationSuffixes.end(), suffix) != kQuantizationSuffixes.end() ||
         suffix.starts_with("weight.quant_state");
}

bool is_plain_float(const ModuleTensors& module) {
  const TensorInfo* weight = module.find("weight");
  if (weight == nullptr || !is_float(weight->dtype)) return false;
  return std::none_of(module.tensors.begin(), module.tensors.end(),
                      [](const auto& tensor) { return is_quantization_suffix(tensor.first); });
}

bool is_router_like(std::string_view module_name) {
  const std::string_view last = last_component(module_name);
  return last == "gate" || last == "wg" || last == "shared_expert_gate" ||
         last.find("router") != std::string_view::npos || has_component(module_name, "router") || is_embedding(last) ||
         is_norm(last);
}

std::optional<ExpertName> expert_name(std::string_view name) {
  constexpr std::string_view key = "experts.";
  for (size_t at = name.find(key); at != std::string_view::npos; at = name.find(key, at + 1)) {
    if (at != 0 && name[at - 1] != '.') continue;
    const size_t number = at + key.size();
    const size_t end = std::min(name.find('.', number), name.size());
    const std::string_view digits = name.substr(number, end - number);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos || end >= name.size())
      continue;
    return ExpertName{name.substr(0, number - 1), digits, name.substr(end + 1)};
  }
  return std::nullopt;
}

std::span<const FusedName> fused_names() { return kFusedNames; }

std::string sibling(std::string_view name, std::string_view last) {
  const std::string_view above = parent(name);
  return above.empty() ? std::string(last) : std::string(above) + "." + std::string(last);
}

std::string_view last_component(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

std::string_view parent(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

}  // namespace gearshift
