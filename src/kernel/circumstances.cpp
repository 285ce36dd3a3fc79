// Conditions and facts: what holds for a layer, a device and what is assumed of an engine.
#include <algorithm>

#include "base/text.h"
#include "gearshift/kernel.h"

namespace gearshift {
namespace {

template <class Sequence, class Value>
bool has(const Sequence& sequence, const Value& value) {
  return std::find(sequence.begin(), sequence.end(), value) != sequence.end();
}

// An empty list asks for nothing.
template <class T, class Value>
bool one_of(const std::vector<T>& asked, const Value& value) {
  return asked.empty() || has(asked, value);
}

// "12.10" is at least "12.9": numbers between dots compare as numbers. What is no number is less than any.
bool version_at_least(std::string_view have, std::string_view need) {
  const std::vector<std::string> ours = split(have, '.'), theirs = split(need, '.');
  for (size_t i = 0; i < theirs.size(); ++i) {
    const int64_t own = i < ours.size() ? parse_integer(ours[i]).value_or(-1) : 0;
    const int64_t other = parse_integer(theirs[i]).value_or(0);
    if (own != other) return own > other;
  }
  return true;
}

bool activations_match(const Condition& condition, const std::optional<ActivationScheme>& activation) {
  const bool asks = !condition.activation_formats.empty() || !condition.activation_granularities.empty() ||
                    condition.activation_dynamic.has_value();
  if (!asks) return true;
  return activation && one_of(condition.activation_formats, activation->format) &&
         one_of(condition.activation_granularities, activation->granularity) &&
         condition.activation_dynamic.value_or(activation->dynamic) == activation->dynamic;
}

bool scheme_matches(const Condition& condition, const Scheme& scheme) {
  return one_of(condition.weight_formats, scheme.weight.format) &&
         one_of(condition.groupings, scheme.weight.grouping.kind) && activations_match(condition, scheme.activation);
}

bool device_matches(const Condition& condition, const DeviceProfile& device) {
  return one_of(condition.platforms, device.platform) &&
         (condition.capabilities.empty() || lies_in(condition.capabilities, device.capability)) &&
         (condition.archs.empty() || std::any_of(condition.archs.begin(), condition.archs.end(),
                                                 [&](std::string_view arch) { return glob_match(arch, device.arch); }));
}

}  // namespace

bool lies_in(const std::vector<CapabilityRange>& ranges, int capability) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const CapabilityRange& range) {
    return capability > 0 && capability >= range.min && (range.max == 0 || capability <= range.max);
  });
}

bool Assumptions::has_package(std::string_view name) const { return has(packages, name); }
bool Assumptions::is_given(std::string_view fact) const { return has(given, fact); }
std::string_view Assumptions::fact(std::string_view name) const {
  const auto found = facts.find(name);
  return found == facts.end() ? std::string_view() : std::string_view(found->second);
}

bool holds(const FactTest& test, const Assumptions& assumptions) {
  const std::string_view found = assumptions.fact(test.fact);
  switch (test.kind) {
    case FactTest::Kind::is:
      return found == test.value;
    case FactTest::Kind::is_not:
      return found != test.value;
    case FactTest::Kind::at_least:
      return version_at_least(found, test.value);
    case FactTest::Kind::given:
      return assumptions.is_given(test.fact);
    case FactTest::Kind::not_given:
      return !assumptions.is_given(test.fact);
  }
  return false;
}

bool holds(const Condition& condition, const LayerCase& layer_case) {
  const Assumptions& assumptions = layer_case.assumptions;
  return device_matches(condition, layer_case.device) && one_of(condition.kinds, layer_case.layer.kind) &&
         one_of(condition.families, layer_case.layer.family) && one_of(condition.dtypes, layer_case.dtype) &&
         scheme_matches(condition, layer_case.layer.scheme) &&
         one_of(condition.quant_methods, assumptions.quant_method) &&
         one_of(condition.model_types, assumptions.model_type) && one_of(condition.backends, layer_case.backend) &&
         !has(condition.other_backends, layer_case.backend) &&
         std::all_of(condition.facts.begin(), condition.facts.end(),
                     [&](const FactTest& test) { return holds(test, assumptions); });
}

std::string weight_type(const Scheme& scheme) {
  const WeightScheme& weight = scheme.weight;
  const std::string word(name(weight.format));
  if (!word.starts_with("int") && !word.starts_with("uint")) return word;
  const std::string width = std::to_string(bits(weight.format));
  if (scheme.activation) return "int" + width;
  if (!weight.symmetric) return "uint" + width;
  return "uint" + width + "b" + std::to_string(int64_t{1} << (bits(weight.format) - 1));
}

}  // namespace gearshift
