#include "report/contract_fields.h"

#include <fmt/format.h>

namespace gearshift {

namespace {

class Fields {
 public:
  template <class T, class Word>
  void any_of(const char* field, const std::vector<T>& allowed, Word word) {
    if (allowed.empty()) return;
    std::vector<std::string> values;
    for (const T& value : allowed) values.emplace_back(word(value));
    fields_.push_back({field, std::move(values)});
  }
  void bounds(const char* field, const Bounds& b) {
    std::string text;
    if (b.min > 1 || b.max != 0)
      text = b.max == 0 ? fmt::format("at least {}", b.min) : fmt::format("{} to {}", b.min, b.max);
    if (b.multiple > 1) text += (text.empty() ? "" : ", ") + fmt::format("a multiple of {}", b.multiple);
    if (!text.empty()) fields_.push_back({field, {text}});
  }
  void at_most(const char* field, int64_t limit) {
    if (limit < Contract{}.max_weight_elements) fields_.push_back({field, {fmt::format("at most {}", limit)}});
  }
  void one(const char* field, std::string_view value) { fields_.push_back({field, {std::string(value)}}); }
  void refused(const char* field, bool allowed) {
    if (!allowed) fields_.push_back({field, {"no"}});
  }
  std::vector<ContractField> take() { return std::move(fields_); }

 private:
  std::vector<ContractField> fields_;
};

}  // namespace

std::string_view activation_use_word(ActivationUse use) {
  return use == ActivationUse::as_checkpoint ? "as the checkpoint" : "16-bit";
}

namespace {

std::string capability_words(const CapabilityRange& range) {
  if (range.max == 0) return fmt::format("{} and up", range.min);
  if (range.min == range.max) return fmt::format("{}", range.min);
  return fmt::format("{} to {}", range.min, range.max);
}

std::string fact_words(const FactTest& test) {
  switch (test.kind) {
    case FactTest::Kind::is:
      return fmt::format("{}={}", test.fact, test.value);
    case FactTest::Kind::is_not:
      return fmt::format("{}!={}", test.fact, test.value);
    case FactTest::Kind::at_least:
      return fmt::format("{}>={}", test.fact, test.value);
    case FactTest::Kind::given:
      return fmt::format("{} stated", test.fact);
    case FactTest::Kind::not_given:
      return fmt::format("{} not stated", test.fact);
  }
  return "";
}

constexpr auto as_it_is = [](std::string_view word) { return word; };
constexpr auto by_name = [](const auto& value) { return name(value); };
constexpr auto as_number = [](int64_t number) { return std::to_string(number); };

// The gates of one contract, in the order in which they are asked.
std::vector<ContractField> own_fields(const Contract& c) {
  Fields out;
  out.any_of("packages", c.packages, as_it_is);
  out.any_of("facts", c.facts, fact_words);
  out.any_of("helpers", c.helpers, [](const HelperOp& helper) { return helper.name; });
  if (c.isa != Isa::portable) out.any_of("isa", std::vector<Isa>{c.isa}, by_name);
  out.any_of("capabilities", c.capabilities, capability_words);
  out.any_of("archs", c.archs, as_it_is);
  out.any_of("libraries", c.libraries, as_it_is);
  out.any_of("weight_formats", c.weight_formats, by_name);
  out.any_of("weight_types", c.weight_types, as_it_is);
  out.any_of("storages", c.storages, by_name);
  out.any_of("groupings", c.groupings, by_name);
  out.any_of("groups", c.groups, as_number);
  out.bounds("group_multiple", {1, 0, c.group_multiple});
  if (c.full_row_groups) out.one("full_row_groups", "yes");
  out.bounds("group_rows", c.group_rows);
  out.any_of("weight_dtypes", c.weight_dtypes, by_name);
  out.any_of("scale_dtypes", c.scale_dtypes, by_name);
  out.any_of("activation_formats", c.activation_formats, by_name);
  if (c.activations_optional) out.one("activations_optional", "yes");
  out.any_of("activation_granularities", c.activation_granularities, by_name);
  out.any_of("activation_groups", c.activation_groups, as_number);
  if (c.activation_dynamic) out.one("activation_dynamic", *c.activation_dynamic ? "dynamic" : "static");
  out.any_of("dtypes", c.dtypes, by_name);
  out.any_of("other_model_types", c.other_model_types, as_it_is);
  out.bounds("n", c.n);
  out.bounds("k", c.k);
  out.bounds("m", c.m);
  if (c.whole_words) out.one("whole_words", "yes");
  if (c.group_fit != GroupFit::anywhere) out.one("group_fit", name(c.group_fit));
  out.at_most("max_weight_elements", c.max_weight_elements);
  out.at_most("max_output_elements", c.max_output_elements);
  out.refused("zero_points", c.zero_points);
  out.refused("act_order", c.act_order);
  out.refused("bias", c.bias);
  out.refused("experts", c.experts);
  out.refused("pre_scale", c.pre_scale);
  out.refused("partial_groups", c.partial_groups);
  out.refused("asymmetric_activations", c.asymmetric_activations);
  out.refused("both_per_tensor", c.both_per_tensor);
  return out.take();
}

void add_words(std::string_view field, const std::vector<std::string>& words, std::string& text) {
  if (words.empty()) return;
  text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field, fmt::join(words, "|"));
}

template <class T, class Word>
void add_words(std::string_view field, const std::vector<T>& values, Word word, std::string& text) {
  std::vector<std::string> words;
  for (const T& value : values) words.emplace_back(word(value));
  add_words(field, words, text);
}

}  // namespace

std::string condition_words(const Condition& when) {
  std::string text;
  add_words("platform", when.platforms, by_name, text);
  add_words("kind", when.kinds, by_name, text);
  add_words("family", when.families, by_name, text);
  add_words("capability", when.capabilities, capability_words, text);
  add_words("arch", when.archs, as_it_is, text);
  add_words("dtype", when.dtypes, by_name, text);
  add_words("weights", when.weight_formats, by_name, text);
  add_words("scales per", when.groupings, by_name, text);
  add_words("activations", when.activation_formats, by_name, text);
  add_words("activation scales per", when.activation_granularities, by_name, text);
  if (when.activation_dynamic) add_words("activation scales", {*when.activation_dynamic ? "dynamic" : "static"}, text);
  add_words("quant_method", when.quant_methods, as_it_is, text);
  add_words("model_type", when.model_types, as_it_is, text);
  add_words("backend", when.backends, as_it_is, text);
  add_words("backend other than", when.other_backends, as_it_is, text);
  add_words("with", when.facts, fact_words, text);
  return text;
}

std::vector<ContractField> contract_fields(const Kernel& kernel) {
  std::vector<ContractField> fields = own_fields(kernel.contract);
  // What counts under a condition alone says so: {"capabilities (platform cuda)", ["89 and up"]}.
  for (const ConditionalContract& more : kernel.contract.where) {
    for (ContractField& field : own_fields(more.contract)) {
      field.name = fmt::format("{} ({})", field.name, condition_words(more.when));
      fields.push_back(std::move(field));
    }
  }
  return fields;
}

}  // namespace gearshift
