// The tensor specifications of Quark's config (formats.md 8).
#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/quark.h"

namespace gearshift::quark {
namespace {

struct ElementName {
  std::string_view word;
  Element element;
};
constexpr std::array kElements = {
    ElementName{"fp8_e4m3", Element::e4m3}, ElementName{"fp8_e5m2", Element::e5m2}, ElementName{"fp4", Element::e2m1},
    ElementName{"fp6_e2m3", Element::e2m3}, ElementName{"fp6_e3m2", Element::e3m2}, ElementName{"int8", Element::int8},
    ElementName{"int4", Element::int4},     ElementName{"uint4", Element::uint4},
};

struct GranularityName {
  std::string_view word;
  Granularity granularity;
};
constexpr std::array kGranularities = {
    GranularityName{"per_tensor", Granularity::per_tensor}, GranularityName{"per_channel", Granularity::per_channel},
    GranularityName{"per_token", Granularity::per_channel}, GranularityName{"per_group", Granularity::per_group},
    GranularityName{"per_block", Granularity::per_block},
};

bool is_float_word(std::string_view word) {
  return word.empty() || word == "float16" || word == "bfloat16" || word == "float32";
}

Result<void> parse_block(const Json& json, const std::string& subject, TensorSpec* spec) {
  const Json* size = json.find("block_size");
  const bool valid = size != nullptr && size->items.size() == 2 &&
                     std::all_of(size->items.begin(), size->items.end(), [](const Json& side) {
                       return side.is(Json::Kind::integer) && side.integer > 0 && side.integer <= (int64_t{1} << 31);
                     });
  if (!valid) {
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     subject + ".block_size",
                     "no pair of positive integers",
                     "[rows, columns]: qscheme is per_block",
                     "",
                     {}};
  }
  spec->block_rows = size->items[0].integer;
  spec->block_cols = size->items[1].integer;
  return {};
}

Result<std::optional<TensorSpec>> parse_one(const Json& json, const std::string& subject) {
  std::string word = lower(json.text_or("dtype", ""));
  if (is_float_word(word)) return std::optional<TensorSpec>{};
  TensorSpec spec;
  spec.exponents = lower(json.text_or("scale_format", "")) == "e8m0";
  if (word == "mx") {
    word = lower(json.text_or("mx_element_dtype", ""));
    spec.exponents = true;
  }
  const auto element =
      std::find_if(kElements.begin(), kElements.end(), [&](const ElementName& known) { return known.word == word; });
  if (element == kElements.end()) {
    return unsupported_scheme(subject + ".dtype", "quark dtype \"" + printable(word, 60) + "\"",
                              "fp8, fp6, fp4, int8, int4 or uint4");
  }
  spec.element = element->element;
  spec.word = word;
  const std::string scheme = lower(json.text_or("qscheme", spec.exponents ? "per_group" : "per_tensor"));
  const auto granularity = std::find_if(kGranularities.begin(), kGranularities.end(),
                                        [&](const GranularityName& known) { return known.word == scheme; });
  if (granularity == kGranularities.end()) {
    return unsupported_scheme(subject + ".qscheme", "quark qscheme \"" + printable(scheme, 60) + "\"",
                              "per_tensor, per_channel, per_group or per_block");
  }
  spec.granularity = granularity->granularity;
  if (spec.granularity == Granularity::per_block) GEARSHIFT_CHECK(parse_block(json, subject, &spec));
  if (spec.granularity == Granularity::per_group) {
    GEARSHIFT_TRY(spec.group, group_size_member(json, subject, 32));
    if (spec.group < 0) spec.granularity = Granularity::per_channel;
  }
  spec.dynamic = json.boolean_or("is_dynamic", false);
  spec.symmetric = json.boolean_or("symmetric", spec.element != Element::uint4);
  const std::string mode = lower(json.text_or("scale_calculation_mode", "even"));
  spec.rule = mode == "floor" ? ScaleRule::e8m0_floor : mode == "ceil" ? ScaleRule::e8m0_ceil : ScaleRule::e8m0_even;
  return std::optional{spec};
}

// A list of two describes two levels: FP4 blocks whose FP8 scales have a tensor-wide one above them are NVFP4.
Result<std::optional<TensorSpec>> parse_spec(const Json* json, const std::string& subject) {
  if (json == nullptr || json->is_null()) return std::optional<TensorSpec>{};
  if (json->is(Json::Kind::object)) return parse_one(*json, subject);
  const bool list =
      json->is(Json::Kind::array) && !json->items.empty() &&
      std::all_of(json->items.begin(), json->items.end(), [](const Json& item) { return item.is(Json::Kind::object); });
  if (!list) {
    return ErrorInfo{ErrorCode::damaged_checkpoint,  subject, std::string(name(json->kind)),
                     "an object, or a list of them", "",      {}};
  }
  std::string words;
  for (const Json& item : json->items) {
    GEARSHIFT_TRY(std::optional<TensorSpec> spec, parse_one(item, subject));
    if (!spec) continue;
    if (json->items.size() == 1) return spec;
    words += (words.empty() ? "" : " over ") + spec->word;
    const bool nvfp4 = spec->element == Element::e2m1 && spec->granularity == Granularity::per_group &&
                       spec->group == 16 && json->items.size() == 2;
    if (!nvfp4) continue;
    spec->two_levels = true;
    return spec;
  }
  return unsupported_scheme(subject, "quark weights in two levels (" + words + ")", "one level, or NVFP4");
}

}  // namespace

Result<LayerSpecs> parse_layer(const Json& json, const std::string& subject) {
  LayerSpecs specs;
  specs.subject = subject;
  GEARSHIFT_TRY(specs.weight, parse_spec(json.find("weight"), subject + ".weight"));
  GEARSHIFT_TRY(specs.input, parse_spec(json.find("input_tensors"), subject + ".input_tensors"));
  return specs;
}

}  // namespace gearshift::quark
