// compressed-tensors (llm-compressor): which group of the config a module belongs to (formats.md 2.1, 2.5).
#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "layer/scheme/compressed_tensors.h"
#include "layer/scheme/names.h"

namespace gearshift {
namespace {

namespace ct = compressed_tensors;

const Json* object_member(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value != nullptr && value->is(Json::Kind::object) ? value : nullptr;
}

Result<const std::vector<Json>*> string_list(const Json* json, const std::string& subject) {
  static const std::vector<Json> kNone;
  if (json == nullptr || json->is_null()) return &kNone;
  const bool strings =
      json->is(Json::Kind::array) &&
      std::all_of(json->items.begin(), json->items.end(), [](const Json& item) { return item.is(Json::Kind::string); });
  if (!strings)
    return ErrorInfo{ErrorCode::damaged_checkpoint, subject, std::string(name(json->kind)),
                     "a list of strings",           "",      {}};
  return &json->items;
}

ErrorInfo unsupported(std::string subject, std::string found, std::string wanted) {
  return ErrorInfo{ErrorCode::unsupported_scheme,
                   std::move(subject),
                   std::move(found),
                   std::move(wanted),
                   "quantize the original float checkpoint with `gearshift quantize`",
                   {}};
}

// What the whole dictionary must not ask for.
Result<void> refuse_whole(const QuantConfig& quant) {
  const Json& dict = *quant.dict;
  if (const Json* transform = object_member(dict, "transform_config"); transform != nullptr) {
    const Json* groups = object_member(*transform, "config_groups");
    if (groups != nullptr && !groups->members.empty()) {
      return unsupported(quant.key("transform_config"),
                         "compressed-tensors with transforms (online Hadamard rotations)", "no transform_config");
    }
  }
  if (const Json* sparsity = object_member(dict, "sparsity_config"); sparsity != nullptr) {
    const std::string_view format = sparsity->text_or("format", "");
    if (!format.empty() && format != "dense") {
      return unsupported(quant.key("sparsity_config.format"),
                         "compressed-tensors format \"" + printable(format, 60) + "\"", "dense weights");
    }
  }
  const std::string_view status = dict.text_or("quantization_status", "compressed");
  if (status == "initialized" || status == "calibration") {
    return unsupported(quant.key("quantization_status"), "compressed-tensors status \"" + std::string(status) + "\"",
                       "\"compressed\" or \"frozen\": this is no finished checkpoint");
  }
  return {};
}

class Reader final : public SchemeReader {
 public:
  explicit Reader(const ModelConfig& config) : config_(config) {}

  Result<void> parse() {
    const QuantConfig& quant = config_.quant;
    GEARSHIFT_CHECK(refuse_whole(quant));
    const std::string_view format = quant.dict->text_or("format", "");
    GEARSHIFT_TRY(const ct::Layout layout, ct::parse_format(format, quant.key("format")));
    const Json* groups = quant.dict->find("config_groups");
    if (groups != nullptr && !groups->is_null() && !groups->is(Json::Kind::object)) {
      return ErrorInfo{ErrorCode::damaged_checkpoint,
                       quant.key("config_groups"),
                       std::string(name(groups->kind)),
                       "an object",
                       "",
                       {}};
    }
    if (groups != nullptr) {
      for (const auto& [label, value] : groups->members) {
        GEARSHIFT_CHECK(add_group(label, value, layout, std::string(format)));
      }
    }
    GEARSHIFT_TRY(const std::vector<Json>* ignored, string_list(quant.dict->find("ignore"), quant.key("ignore")));
    for (const Json& entry : *ignored) GEARSHIFT_CHECK(ignore_.add(entry.string, quant.key("ignore")));
    return {};
  }

  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    const bool plain = is_plain_float(module);
    std::string rule_name = module.name;
    if (config_.quant.text_only) {
      std::optional<std::string> relative = text_name(module.name);
      if (!relative) return read_unquantized(module, config_);
      rule_name = *std::move(relative);
    }
    GEARSHIFT_TRY(const bool ignored, is_ignored(rule_name));
    if (ignored) return read_unquantized(module, config_);
    // Lists that spell prefixes differently, and groups that say nothing about weights (such groups describe
    // attention), cannot overrule quantized tensors.
    if (plain && (ignore_.match_respelled(rule_name) || weightless_.match(rule_name)))
      return read_unquantized(module, config_);
    const ct::Group* group = group_of(rule_name, module);
    if (group == nullptr) return read_unquantized(module, config_);
    if (!plain) return ct::read_module(module, *group);
    // Quantized by the rule, float on disk: right for what a rule about linear layers does not reach.
    if (is_router_like(module.name) || module.tied_head || module.draft) return read_unquantized(module, config_);
    const TensorInfo* weight = module.find("weight");
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     module.name,
                     std::string(name(weight->dtype)) + " weight without scales",
                     "quantized tensors: " + group->subject + " targets this module",
                     "add it to the ignore list if it was left in float on purpose",
                     {}};
  }

  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const override {
    const std::vector<ExpectedTensor> none;
    const std::optional<std::string> rule = config_.quant.text_only ? text_name(module.name) : module.name;
    if (!rule || module.draft || is_router_like(module.name)) return none;
    GEARSHIFT_TRY(const bool ignored, is_ignored(*rule));
    if (ignored || ignore_.match_respelled(*rule) || weightless_.match(*rule)) return none;
    const ct::Group* group = group_of(*rule, module);
    return group != nullptr ? ct::expected_tensors(*group, n, k) : none;
  }

 private:
  Result<void> add_group(const std::string& label, const Json& value, ct::Layout layout, std::string format) {
    ct::Group group;
    group.subject = config_.quant.key("config_groups." + printable(label, 60));
    group.layout = layout;
    group.format = std::move(format);
    const Json* targets = &value;
    if (value.is(Json::Kind::array)) {
      const std::optional<ct::Preset> preset = ct::preset(label);
      if (!preset)
        return unsupported(group.subject, "compressed-tensors preset \"" + printable(label, 60) + "\"",
                           "a known preset name");
      group.weights = preset->weights;
      group.input = preset->input;
    } else if (value.is(Json::Kind::object)) {
      targets = value.find("targets");
      if (const Json* own = value.find("format"); own != nullptr && own->is(Json::Kind::string)) {
        group.format = own->string;
        GEARSHIFT_TRY(group.layout, ct::parse_format(own->string, group.subject + ".format"));
      }
      GEARSHIFT_TRY(group.weights, ct::parse_arguments(value.find("weights"), group.subject + ".weights"));
      GEARSHIFT_TRY(group.input,
                    ct::parse_arguments(value.find("input_activations"), group.subject + ".input_activations"));
    } else {
      return ErrorInfo{ErrorCode::damaged_checkpoint,
                       group.subject,
                       std::string(name(value.kind)),
                       "an object or a list of targets",
                       "",
                       {}};
    }
    GEARSHIFT_TRY(const std::vector<Json>* entries, string_list(targets, group.subject + ".targets"));
    for (const Json& entry : *entries) {
      if (!group.weights) {
        GEARSHIFT_CHECK(weightless_.add(entry.string, group.subject + ".targets"));
        continue;
      }
      GEARSHIFT_CHECK(targets_.add(entry.string, group.subject + ".targets"));
      group_of_target_.push_back(groups_.size());
      const std::string lowered = lower(entry.string);
      if (lowered == "linear" || lowered == "linearbase") {
        if (!linear_) linear_ = groups_.size();
      } else if (lowered == "fusedmoe") {
        if (!experts_) experts_ = groups_.size();
      }
    }
    groups_.push_back(std::move(group));
    return {};
  }

  Result<bool> is_ignored(std::string_view name) const {
    if (ignore_.match(name)) return true;
    const std::vector<std::string> shards = shard_names(name);
    const auto ignored = std::count_if(shards.begin(), shards.end(),
                                       [&](const std::string& shard) { return ignore_.match(shard).has_value(); });
    if (shards.empty() || ignored == 0) return false;
    if (ignored == static_cast<std::ptrdiff_t>(shards.size())) return true;
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     std::string(name),
                     std::to_string(ignored) + " of its " + std::to_string(shards.size()) + " parts in " +
                         config_.quant.key("ignore"),
                     "all of them or none: the checkpoint stores them as one",
                     "",
                     {}};
  }

  // The group that quantizes the weights of a module; nullptr: none.
  const ct::Group* group_of(std::string_view name, const ModuleTensors& module) const {
    std::optional<size_t> index = by_name(name);
    if (!index) index = by_class(module);
    if (!index) index = by_fused_names(name);
    return index ? &groups_[*index] : nullptr;
  }

  std::optional<size_t> by_name(std::string_view name) const {
    std::optional<size_t> target = targets_.match(name);
    if (!target) target = targets_.match_respelled(name);
    return target ? std::optional{group_of_target_[*target]} : std::nullopt;
  }

  std::optional<size_t> by_class(const ModuleTensors& module) const {
    if (linear_) return linear_;
    const bool expert = expert_name(module.name).has_value() || module.raw_stack;
    return expert ? experts_ : std::nullopt;
  }

  std::optional<size_t> by_fused_names(std::string_view name) const {
    std::optional<size_t> common;
    for (const std::string& shard : shard_names(name)) {
      const std::optional<size_t> index = by_name(shard);
      if (!index || (common && *common != *index)) return std::nullopt;
      common = index;
    }
    if (common) return common;
    const std::string fused = fused_name(name);
    return fused.empty() ? std::nullopt : by_name(fused);
  }

  const ModelConfig& config_;
  std::vector<ct::Group> groups_;
  TargetList targets_, ignore_, weightless_;
  std::vector<size_t> group_of_target_;
  std::optional<size_t> linear_, experts_;
};

}  // namespace

extern const SchemeEntry compressed_tensors_scheme;
const SchemeEntry compressed_tensors_scheme = {
    "compressed-tensors",
    [](const QuantConfig& config) { return config.method == "compressed-tensors"; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      auto reader = std::make_unique<Reader>(config);
      GEARSHIFT_CHECK(reader->parse());
      return std::unique_ptr<SchemeReader>(std::move(reader));
    },
};

}  // namespace gearshift
