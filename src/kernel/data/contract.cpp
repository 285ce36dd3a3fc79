#include "kernel/data/contract.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace gearshift {

std::string_view name(GroupFit fit) {
  switch (fit) {
    case GroupFit::anywhere:
      return "anywhere";
    case GroupFit::full_k:
      return "full_k";
    case GroupFit::local_k:
      return "local_k";
    case GroupFit::local_k_of_narrow_groups:
      return "local_k_of_narrow_groups";
  }
  return "";
}

namespace data {
namespace {

// Every value of an enumeration whose values are 0 to N - 1.
template <class T, size_t N>
constexpr std::array<T, N> values_of() {
  std::array<T, N> values{};
  for (size_t i = 0; i < N; ++i) values[i] = static_cast<T>(i);
  return values;
}
template <class T, size_t N>
std::span<const T> all() {
  static constexpr std::array<T, N> values = values_of<T, N>();
  return values;
}
std::span<const Format> all_formats() { return all<Format, static_cast<size_t>(Format::uint8) + 1>(); }
std::span<const Storage> all_storages() { return all<Storage, static_cast<size_t>(Storage::dense_transposed) + 1>(); }
std::span<const Grouping::Kind> all_groupings() {
  return all<Grouping::Kind, static_cast<size_t>(Grouping::Kind::block) + 1>();
}
std::span<const DType> all_dtypes() { return all<DType, static_cast<size_t>(DType::boolean) + 1>(); }
std::span<const Granularity> all_granularities() {
  return all<Granularity, static_cast<size_t>(Granularity::token_group) + 1>();
}
std::span<const Isa> all_isas() { return all<Isa, static_cast<size_t>(Isa::neon) + 1>(); }
std::span<const GroupFit> all_fits() {
  return all<GroupFit, static_cast<size_t>(GroupFit::local_k_of_narrow_groups) + 1>();
}

// "90", "10x", "75+", "100-119".
std::optional<CapabilityRange> parse_capabilities(std::string_view text) {
  const auto number = [](std::string_view digits) -> std::optional<int> {
    const std::optional<int64_t> value = parse_integer(digits);
    if (!value || *value < 0 || *value > 10'000) return std::nullopt;
    return static_cast<int>(*value);
  };
  if (text.empty()) return std::nullopt;
  const std::string_view head = text.substr(0, text.size() - 1);
  if (text.back() == 'x') {
    const auto major = number(head);
    return major && *major > 0 && *major <= 1000 ? std::optional(CapabilityRange{*major * 10, *major * 10 + 9})
                                                 : std::nullopt;
  }
  if (text.back() == '+') {
    const auto least = number(head);
    return least ? std::optional(CapabilityRange{*least, 0}) : std::nullopt;
  }
  const size_t dash = text.find('-', 1);
  const auto least = number(text.substr(0, dash));
  const auto most = dash == std::string_view::npos ? least : number(text.substr(dash + 1));
  if (!least || !most || *most < *least || *most == 0) return std::nullopt;
  return CapabilityRange{*least, *most};
}

void read_capabilities(Fields& fields, std::vector<CapabilityRange>& out) {
  fields.each("capabilities", [&](const Json& item, const std::string& place) {
    const auto range = parse_capabilities(item.string);
    if (!range) return fields.reading().wrong(place, described(item), "\"90\", \"10x\", \"75+\" or \"100-119\"");
    out.push_back(*range);
  });
}

// "VALUE", "!VALUE", ">=VALUE", "given" or "not given".
void read_test(const Fact& fact, const Json& json, const std::string& place, Reading& reading,
               std::vector<FactTest>& out) {
  if (!json.is(Json::Kind::string)) return reading.wrong(place, described(json), "a text");
  FactTest test{fact.name, FactTest::Kind::is, reading.texts.keep(json.string), fact.stage};
  if (test.value == "given" || test.value == "not given") {
    test.kind = test.value == "given" ? FactTest::Kind::given : FactTest::Kind::not_given;
  } else if (test.value.starts_with(">=")) {
    test.kind = FactTest::Kind::at_least;
    test.value.remove_prefix(2);
  } else if (test.value.starts_with("!")) {
    test.kind = FactTest::Kind::is_not;
    test.value.remove_prefix(1);
  }
  out.push_back(test);
}

// {"NAME": TEST} or {"NAME": [TEST, TEST]}
void read_facts(Fields& fields, const Declared& declared, std::vector<FactTest>& out) {
  Reading& reading = fields.reading();
  fields.members("facts", [&](const std::string& name, const Json& member, const std::string& place) {
    const Fact* fact = declared.fact(name);
    if (fact == nullptr) {
      std::vector<std::string_view> valid;
      for (const Fact& known : declared.facts) valid.push_back(known.name);
      return reading.unknown(place, name, "one of `facts`", valid);
    }
    if (!member.is(Json::Kind::array)) return read_test(*fact, member, place, reading, out);
    for (const Json& item : member.items) read_test(*fact, item, place, reading, out);
  });
}

void read_packages(Fields& fields, const Declared& declared, std::vector<std::string_view>& out) {
  fields.texts("packages", out);
  for (std::string_view package : out) {
    if (std::find(declared.packages.begin(), declared.packages.end(), package) == declared.packages.end())
      fields.reading().unknown(fields.place_of("packages"), package, "one of `packages`", declared.packages);
  }
}

void read_contract_fields(Fields& fields, const Declared& declared, Contract& contract) {
  read_packages(fields, declared, contract.packages);
  read_facts(fields, declared, contract.facts);
  fields.word("isa", contract.isa, all_isas());
  read_capabilities(fields, contract.capabilities);
  fields.texts("archs", contract.archs);
  fields.words("weight_formats", contract.weight_formats, all_formats());
  fields.texts("weight_types", contract.weight_types);
  fields.words("storages", contract.storages, all_storages());
  fields.words("groupings", contract.groupings, all_groupings());
  fields.integers("groups", contract.groups);
  fields.integer("group_multiple", contract.group_multiple, 1, int64_t{1} << 31);
  fields.flag("full_row_groups", contract.full_row_groups);
  fields.bounds("group_rows", contract.group_rows);
  fields.words("weight_dtypes", contract.weight_dtypes, all_dtypes());
  fields.words("scale_dtypes", contract.scale_dtypes, all_dtypes());
  fields.words("activation_formats", contract.activation_formats, all_formats());
  fields.flag("activations_optional", contract.activations_optional);
  fields.words("activation_granularities", contract.activation_granularities, all_granularities());
  fields.integers("activation_groups", contract.activation_groups);
  fields.flag("activation_dynamic", contract.activation_dynamic);
  fields.words("dtypes", contract.dtypes, all_dtypes());
  fields.texts("other_model_types", contract.other_model_types);
  fields.bounds("n", contract.n);
  fields.bounds("k", contract.k);
  fields.bounds("m", contract.m);
  fields.flag("whole_words", contract.whole_words);
  fields.word("group_fit", contract.group_fit, all_fits());
  fields.flag("zero_points", contract.zero_points);
  fields.flag("act_order", contract.act_order);
  fields.flag("bias", contract.bias);
  fields.flag("experts", contract.experts);
  fields.flag("pre_scale", contract.pre_scale);
  fields.flag("partial_groups", contract.partial_groups);
  // Lists of other engines say themselves which groups a split may cut ("group_fit").
  contract.shard_offset = true;
  fields.flag("shard_offset", contract.shard_offset);
  fields.flag("asymmetric_activations", contract.asymmetric_activations);
  fields.flag("both_per_tensor", contract.both_per_tensor);
}

}  // namespace

std::span<const Platform> all_platforms() { return all<Platform, static_cast<size_t>(Platform::xpu) + 1>(); }
std::span<const LayerKind> all_kinds() { return all<LayerKind, 2>(); }

const Fact* Declared::fact(std::string_view name) const {
  for (const Fact& known : facts) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

Condition read_condition(const Json& json, const std::string& place, const Declared& declared, Reading& reading) {
  Condition condition;
  Fields fields(json, place, reading);
  fields.words("platforms", condition.platforms, all_platforms());
  fields.words("kinds", condition.kinds, all_kinds());
  fields.words("families", condition.families, all_families());
  read_capabilities(fields, condition.capabilities);
  fields.texts("archs", condition.archs);
  fields.words("dtypes", condition.dtypes, all_dtypes());
  fields.words("weight_formats", condition.weight_formats, all_formats());
  fields.words("groupings", condition.groupings, all_groupings());
  fields.words("activation_formats", condition.activation_formats, all_formats());
  fields.words("activation_granularities", condition.activation_granularities, all_granularities());
  fields.flag("activation_dynamic", condition.activation_dynamic);
  fields.texts("quant_methods", condition.quant_methods);
  fields.texts("model_types", condition.model_types);
  fields.texts("backends", condition.backends);
  fields.texts("other_backends", condition.other_backends);
  read_facts(fields, declared, condition.facts);
  fields.finish();
  return condition;
}

Contract read_contract(const Json& json, const std::string& place, const Declared& declared, Reading& reading) {
  Contract contract;
  Fields fields(json, place, reading);
  read_contract_fields(fields, declared, contract);
  fields.each("where", [&](const Json& item, const std::string& item_place) {
    ConditionalContract more;
    Fields inner(item, item_place, reading);
    if (const Json* when = inner.take("when"))
      more.when = read_condition(*when, inner.place_of("when"), declared, reading);
    else
      reading.wrong(item_place, "no `when`", "the condition under which these fields count");
    read_contract_fields(inner, declared, more.contract);
    inner.finish();
    contract.where.push_back(std::move(more));
  });
  fields.finish();
  return contract;
}

}  // namespace data
}  // namespace gearshift
