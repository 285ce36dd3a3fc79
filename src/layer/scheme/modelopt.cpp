// NVIDIA ModelOpt: which algorithm a module has (formats.md 3.1, 3.4, 3.5) and its tensors (3.2, 3.3).
#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/try.h"
#include "layer/scheme/modelopt.h"
#include "layer/scheme/names.h"

namespace gearshift {
namespace {

using modelopt::Algorithm;
using modelopt::Layer;

struct AlgorithmName {
  std::string_view name;
  Algorithm algorithm;
};
constexpr std::array kAlgorithms = {
    AlgorithmName{"", Algorithm::none},
    AlgorithmName{"NONE", Algorithm::none},
    AlgorithmName{"FP8", Algorithm::fp8},
    AlgorithmName{"FP8_PER_CHANNEL_PER_TOKEN", Algorithm::fp8_per_channel},
    AlgorithmName{"FP8_PB_WO", Algorithm::fp8_block},
    AlgorithmName{"NVFP4", Algorithm::nvfp4},
    AlgorithmName{"NVFP4_AWQ", Algorithm::nvfp4},
    AlgorithmName{"W4A16_NVFP4", Algorithm::nvfp4_w4a16},
    AlgorithmName{"W4A8_NVFP4_FP8", Algorithm::nvfp4_fp8},
    AlgorithmName{"MXFP4", Algorithm::mxfp4},
    AlgorithmName{"W4A8_MXFP4_FP8", Algorithm::mxfp4_fp8},
    AlgorithmName{"MXFP8", Algorithm::mxfp8},
    AlgorithmName{"W4A16_AWQ", Algorithm::int4_awq},
    AlgorithmName{"INT4_AWQ", Algorithm::int4_awq},
    AlgorithmName{"W4A8_AWQ", Algorithm::w4a8_awq},
    AlgorithmName{"W8A16", Algorithm::w8a16},
    AlgorithmName{"W8A8_SQ_PER_CHANNEL", Algorithm::smoothquant},
    AlgorithmName{"MIXED_PRECISION", Algorithm::mixed},
    AlgorithmName{"NVFP4_SVD", Algorithm::refused},  // its low-rank side path would have to run, too
};

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

bool is_vision(std::string_view name) {
  const std::string_view core = core_name(name);
  return core.starts_with("vision_tower") || core.starts_with("vision_model") || core.starts_with("visual");
}

class Reader final : public SchemeReader {
 public:
  explicit Reader(const ModelConfig& config) : config_(config) {}

  Result<void> parse() {
    const QuantConfig& quant = config_.quant;
    const Json& dict = *quant.dict;
    for (std::string_view key : {"exclude_modules", "ignore"})
      GEARSHIFT_CHECK(parse_excluded(dict.find(key), quant.key(key)));
    GEARSHIFT_TRY(whole_, parse_layer(dict, quant.source));
    if (whole_.algorithm == Algorithm::refused) return refuse(quant.key("quant_algo"), whole_.word);
    if (whole_.group == 0) whole_.group = group_of_config_groups(dict);
    weight_only_ = whole_.algorithm != Algorithm::mixed && says_weight_only(dict);
    if (whole_.algorithm != Algorithm::mixed) return {};
    const Json* layers = dict.find("quantized_layers");
    if (layers == nullptr || !layers->is(Json::Kind::object)) {
      return ErrorInfo{ErrorCode::damaged_checkpoint,
                       quant.key("quantized_layers"),
                       layers == nullptr ? "none" : std::string(name(layers->kind)),
                       "an object: the algorithm is MIXED_PRECISION",
                       "",
                       {}};
    }
    layers_.reserve(layers->members.size());
    for (const auto& [module, value] : layers->members) {
      GEARSHIFT_TRY(Layer layer, parse_layer(value, quant.key("quantized_layers." + printable(module, 120))));
      if (layer.algorithm == Algorithm::refused || layer.algorithm == Algorithm::mixed)
        refusals_.push_back(refuse(module, layer.word));
      const Layer* kept = &layers_.emplace(module, std::move(layer)).first->second;
      for (std::string_view above = parent(module); !above.empty(); above = parent(above))
        containers_.emplace(std::string(above), kept);
    }
    return {};
  }

  std::vector<ErrorInfo> refusals() const override { return refusals_; }

  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    const bool plain = is_plain_float(module);
    std::string rule_name = module.name;
    if (config_.quant.text_only) {
      std::optional<std::string> relative = text_name(module.name);
      if (!relative) return read_unquantized(module, config_);
      rule_name = *std::move(relative);
    }
    if (excluded_.match(rule_name) || (plain && excluded_.match_respelled(rule_name)))
      return read_unquantized(module, config_);
    if (plain && is_vision(rule_name)) return read_unquantized(module, config_);
    const Layer* layer = whole_.algorithm == Algorithm::mixed ? layer_of(rule_name) : &whole_;
    if (layer == nullptr || layer->algorithm == Algorithm::none) return read_unquantized(module, config_);
    if (layer->algorithm == Algorithm::refused || layer->algorithm == Algorithm::mixed)
      return refuse(module.name, layer->word);
    if (!plain) return modelopt::read_module(module, *layer, weight_only_);
    if (is_router_like(module.name) || module.tied_head || module.draft) return read_unquantized(module, config_);
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     module.name,
                     std::string(name(module.find("weight")->dtype)) + " weight without scales",
                     "tensors of " + layer->word + ": " + config_.quant.source + " does not exclude this module",
                     "add it to the excluded modules if it was left in float on purpose",
                     {}};
  }

  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const override {
    const std::vector<ExpectedTensor> none;
    const std::optional<std::string> rule = config_.quant.text_only ? text_name(module.name) : module.name;
    if (!rule || excluded_.match(*rule) || excluded_.match_respelled(*rule) || is_vision(*rule)) return none;
    const bool mixed = whole_.algorithm == Algorithm::mixed;
    // A list of quantized layers means what it says; an algorithm for all leaves these in float.
    if (!mixed && (module.draft || is_router_like(module.name))) return none;
    const Layer* layer = mixed ? layer_of(*rule) : &whole_;
    if (layer == nullptr || layer->algorithm == Algorithm::none) return none;
    if (layer->algorithm == Algorithm::refused || layer->algorithm == Algorithm::mixed)
      return refuse(module.name, layer->word);
    return modelopt::expected_tensors(*layer, n, k);
  }

 private:
  static ErrorInfo refuse(std::string subject, const std::string& word) {
    return ErrorInfo{ErrorCode::unsupported_scheme,
                     std::move(subject),
                     "ModelOpt quant_algo \"" + printable(word, 60) + "\"",
                     "an algorithm of ModelOpt that Gearshift loads",
                     "export the model again with a plain algorithm (FP8, NVFP4, W4A16_AWQ ...)",
                     {}};
  }

  Result<void> parse_excluded(const Json* list, const std::string& subject) {
    if (list == nullptr || list->is_null()) return {};
    if (!list->is(Json::Kind::array)) {
      return ErrorInfo{ErrorCode::damaged_checkpoint, subject, std::string(name(list->kind)),
                       "a list of strings",           "",      {}};
    }
    for (const Json& entry : list->items) {
      if (!entry.is(Json::Kind::string)) {
        return ErrorInfo{ErrorCode::damaged_checkpoint, subject, std::string(name(entry.kind)),
                         "a list of strings",           "",      {}};
      }
      excluded_.add(entry.string);
    }
    return {};
  }

  static Result<Layer> parse_layer(const Json& json, const std::string& subject) {
    if (!json.is(Json::Kind::object)) {
      return ErrorInfo{ErrorCode::damaged_checkpoint, subject, std::string(name(json.kind)),
                       "an object with quant_algo",   "",      {}};
    }
    const Json* word = json.find("quant_algo");
    Layer layer;
    if (word != nullptr && !word->is_null()) {
      if (!word->is(Json::Kind::string)) {
        return ErrorInfo{
            ErrorCode::damaged_checkpoint, subject + ".quant_algo", std::string(name(word->kind)), "a string", "", {}};
      }
      layer.word = word->string;
    }
    const std::string spelled = upper(layer.word);
    const auto known =
        std::find_if(kAlgorithms.begin(), kAlgorithms.end(), [&](const AlgorithmName& a) { return a.name == spelled; });
    layer.algorithm = known == kAlgorithms.end() ? Algorithm::refused : known->algorithm;
    for (std::string_view key : {"group_size", "awq_block_size"}) {
      const Json* size = json.find(key);
      if (size == nullptr || size->is_null()) continue;
      if (!size->is(Json::Kind::integer) || size->integer < 0 || size->integer > (int64_t{1} << 31)) {
        return ErrorInfo{ErrorCode::damaged_checkpoint,
                         subject + "." + std::string(key),
                         size->is(Json::Kind::integer) ? std::to_string(size->integer) : std::string(name(size->kind)),
                         "a positive integer",
                         "",
                         {}};
      }
      layer.group = size->integer;
      break;
    }
    return layer;
  }

  // config.json has the group size only inside its view in compressed-tensors' style.
  static int64_t group_of_config_groups(const Json& dict) {
    const Json* groups = dict.find("config_groups");
    if (groups == nullptr) return 0;
    for (const auto& [label, group] : groups->members) {
      const Json* size = group.at({"weights", "group_size"});
      if (size != nullptr && size->is(Json::Kind::integer) && size->integer > 0 && size->integer <= (int64_t{1} << 31))
        return size->integer;
    }
    return 0;
  }

  // That view is secondary, but it is the only place that tells weight-only MXFP4 and MXFP8 from the others.
  static bool says_weight_only(const Json& dict) {
    const Json* groups = dict.find("config_groups");
    if (groups == nullptr || groups->members.empty()) return false;
    return std::all_of(groups->members.begin(), groups->members.end(), [](const auto& group) {
      const Json* input = group.second.find("input_activations");
      return input == nullptr || input->is_null();
    });
  }

  // The entry of quantized_layers for a module: its own, that of a fused name it belongs to or is made of, that of the
  // nearest listed ancestor, that of a listed child; nullptr: not listed.
  const Layer* layer_of(std::string_view name) const {
    if (const Layer* layer = lookup(name); layer != nullptr) return layer;
    for (const std::string& spelled : respellings(name)) {
      if (const Layer* layer = lookup(spelled); layer != nullptr) return layer;
    }
    return nullptr;
  }

  const Layer* lookup(std::string_view name) const {
    auto find = [&](std::string_view key) -> const Layer* {
      const auto found = layers_.find(key);
      return found == layers_.end() ? nullptr : &found->second;
    };
    if (const Layer* own = find(name); own != nullptr) return own;
    const Layer* common = nullptr;
    for (const std::string& shard : shard_names(name)) {
      const Layer* layer = find(shard);
      if (layer == nullptr || (common != nullptr && common->algorithm != layer->algorithm)) {
        common = nullptr;
        break;
      }
      common = layer;
    }
    if (common != nullptr) return common;
    if (const std::string fused = fused_name(name); !fused.empty()) {
      if (const Layer* layer = find(fused); layer != nullptr) return layer;
    }
    for (std::string_view above = parent(name); !above.empty(); above = parent(above)) {
      if (const Layer* layer = find(above); layer != nullptr) return layer;
    }
    // A stack of experts whose members are listed one by one: experts.gate_up_proj for experts.0.up_proj ...
    for (std::string_view at : {name, parent(name)}) {
      if (at != name && last_component(at) != "experts") break;
      const auto found = containers_.find(at);
      if (found != containers_.end()) return found->second;
    }
    return nullptr;
  }

  const ModelConfig& config_;
  Layer whole_;
  bool weight_only_ = false;
  ExcludeList excluded_;
  NameMap<Layer> layers_;
  NameMap<const Layer*> containers_;  // ancestors of listed names
  std::vector<ErrorInfo> refusals_;
};

}  // namespace

extern const SchemeEntry modelopt_scheme;
const SchemeEntry modelopt_scheme = {
    "ModelOpt",
    [](const QuantConfig& config) { return config.method == "modelopt"; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      auto reader = std::make_unique<Reader>(config);
      GEARSHIFT_CHECK(reader->parse());
      return std::unique_ptr<SchemeReader>(std::move(reader));
    },
};

}  // namespace gearshift
