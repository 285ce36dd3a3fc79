#include "quantize/rules.h"

#include <algorithm>

#include "base/text.h"
#include "base/try.h"

namespace gearshift::quantize_detail {
namespace {

bool for_all(const QuantizeRule& rule) { return glob_literals(rule.glob) == 0; }
bool matches(const QuantizeRule& rule, const std::string& name) {
  return rule.glob.empty() || glob_match(rule.glob, name);
}

std::string_view last_component(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// A weight that the checkpoint stores under another name belongs to another module (an output head tied to the
// embedding).
bool is_tied(const LayerSpec& layer) {
  for (const StoredTensor& tensor : layer.modules.at(0).tensors) {
    if (tensor.role == TensorRole::weight) return tensor.name != layer.name + ".weight";
  }
  return false;
}

// Why a rule for all layers leaves this one out; "" when it does not.
std::string_view kept_float(const LayerSpec& layer) {
  const std::string_view last = last_component(layer.name);
  if (is_tied(layer)) return "its weight is the embedding's";
  if (last == "lm_head") return "an output head";
  if (last == "gate" || last == "router" || last == "shared_expert_gate") return "a router";
  return "";
}

ErrorInfo matches_nothing(const QuantizeRule& rule, const std::vector<LayerSpec>& layers) {
  ErrorInfo error{
      ErrorCode::usage, "--scheme " + printable(rule.glob) + "=" + rule.scheme, "no linear layer matches", "", "", {}};
  std::vector<std::string_view> names;
  for (const LayerSpec& layer : layers) names.push_back(layer.name);
  const auto near = near_names(rule.glob, names);
  const std::string example = !near.empty() ? join(near, ", ") : std::string(names.empty() ? "" : names.front());
  error.hint = "layers are named like " + printable(example) + "; * matches any characters";
  return error;
}

Result<void> check_layer(const LayerSpec& layer, const Preset& preset) {
  const std::string way_out = "leave it float with --scheme '" + layer.name + "=UNQUANTIZED'";
  if (layer.stacked) {
    return ErrorInfo{ErrorCode::usage, layer.name, "experts stored as one stack", "one tensor per expert", way_out, {}};
  }
  if (is_tied(layer)) {
    return ErrorInfo{ErrorCode::usage,      layer.name, "a weight shared with the embedding",
                     "a weight of its own", way_out,    {}};
  }
  if (layer.k % preset.k_multiple != 0) {
    return ErrorInfo{ErrorCode::usage,
                     layer.name,
                     "K = " + std::to_string(layer.k),
                     "a multiple of " + std::to_string(preset.k_multiple) + " for " + std::string(preset.name),
                     way_out,
                     {}};
  }
  return {};
}

}  // namespace

Result<RuleResult> apply_rules(const std::vector<LayerSpec>& layers, const std::vector<QuantizeRule>& rules,
                               Container container) {
  if (rules.empty()) {
    return ErrorInfo{
        ErrorCode::usage, "--scheme", "nothing", "a preset name, or GLOB=NAME", "for example --scheme NVFP4", {}};
  }
  std::vector<const Preset*> presets_of_rules;
  for (const QuantizeRule& rule : rules) {
    GEARSHIFT_TRY(const Preset* preset, find_preset(rule.scheme, container));
    presets_of_rules.push_back(preset);
  }
  GEARSHIFT_TRY(const Preset* unquantized, find_preset("UNQUANTIZED", container));

  RuleResult result;
  std::vector<bool> matched(rules.size());
  size_t without_rule = 0;
  for (const LayerSpec& layer : layers) {
    Assignment chosen{unquantized, -1};
    int64_t most = -1;
    for (size_t r = 0; r < rules.size(); ++r) {
      if (!matches(rules[r], layer.name)) continue;
      matched[r] = true;
      const auto literals = static_cast<int64_t>(glob_literals(rules[r].glob));
      if (literals >= most) {
        most = literals;
        chosen = {presets_of_rules[r], static_cast<int>(r)};
      }
    }
    without_rule += chosen.rule < 0 ? 1 : 0;
    if (chosen.preset->recipe != nullptr && for_all(rules[static_cast<size_t>(chosen.rule)])) {
      if (const std::string_view why = kept_float(layer); !why.empty()) {
        const std::string_view way_in = is_tied(layer) ? "" : "; name it in --scheme to quantize it";
        result.notes.push_back(layer.name + " stays float: " + std::string(why) + std::string(way_in));
        chosen.preset = unquantized;
      }
    }
    if (chosen.preset->recipe != nullptr) GEARSHIFT_CHECK(check_layer(layer, *chosen.preset));
    result.modules.push_back(chosen);
  }
  for (size_t r = 0; r < rules.size(); ++r) {
    if (!matched[r]) return matches_nothing(rules[r], layers);
  }
  if (without_rule > 0) {
    result.notes.push_back(std::to_string(without_rule) + " of " + std::to_string(layers.size()) +
                           " linear layers stay float: no --scheme matches them");
  }
  return result;
}

}  // namespace gearshift::quantize_detail
