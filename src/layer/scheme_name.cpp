#include <fmt/format.h>

#include "gearshift/layer.h"

namespace gearshift {

namespace {

bool is_grouped(const WeightScheme& weight, int64_t cols) {
  return weight.grouping.kind == Grouping::Kind::group && weight.grouping.cols == cols;
}

bool is_one_of(Format format, Format a, Format b) { return format == a || format == b; }

std::string fp8_preset(const WeightScheme& weight, const std::optional<ActivationScheme>& activation) {
  if (!activation) return "FP8A16";
  if (activation->format != Format::e4m3) return "";
  const Grouping::Kind kind = weight.grouping.kind;
  const Granularity granularity = activation->granularity;
  if (kind == Grouping::Kind::tensor && granularity == Granularity::tensor && !activation->dynamic) return "FP8";
  if (kind == Grouping::Kind::row && granularity == Granularity::token && activation->dynamic) return "FP8_DYNAMIC";
  if (kind == Grouping::Kind::block && granularity == Granularity::token_group && activation->dynamic)
    return "FP8_BLOCK";
  return "";
}

std::string integer_preset(const WeightScheme& weight, const std::optional<ActivationScheme>& activation) {
  const bool four = is_one_of(weight.format, Format::int4, Format::uint4);
  if (!four && !is_one_of(weight.format, Format::int8, Format::uint8)) return "";
  if (!activation) return fmt::format("W{}A16{}", four ? 4 : 8, weight.symmetric ? "" : "_ASYM");
  if (!weight.symmetric || !activation->symmetric) return "";
  if (activation->format == Format::e4m3) return four ? "W4AFP8" : "";
  if (activation->format != Format::int8) return "";
  if (four) return "W4A8";
  const bool per_token = activation->dynamic && activation->granularity == Granularity::token;
  return weight.grouping.kind == Grouping::Kind::row && per_token ? "INT8" : "";
}

// The presets that also exist without quantized activations, which then carry the suffix A16.
std::string with_activation(std::string_view preset, Format same, const std::optional<ActivationScheme>& activation) {
  if (!activation) return fmt::format("{}A16", preset);
  return activation->format == same ? std::string(preset) : "";
}

std::string preset(const Scheme& scheme) {
  const WeightScheme& weight = scheme.weight;
  const bool exponents = weight.scale == DType::f8_e8m0 && is_grouped(weight, 32);
  if (!scheme.quantized) return "UNQUANTIZED";
  if (scheme.pre_scale) return "";
  if (weight.format == Format::e2m1 && exponents) return with_activation("MXFP4", Format::e2m1, scheme.activation);
  if (weight.format == Format::e4m3 && exponents) return with_activation("MXFP8", Format::e4m3, scheme.activation);
  if (weight.format == Format::e2m1 && weight.global_scale && is_grouped(weight, 16)) {
    return with_activation("NVFP4", Format::e2m1, scheme.activation);
  }
  if (weight.format == Format::e4m3) return fp8_preset(weight, scheme.activation);
  return integer_preset(weight, scheme.activation);
}

std::string words(const Grouping& grouping) {
  switch (grouping.kind) {
    case Grouping::Kind::tensor:
      return "per tensor";
    case Grouping::Kind::row:
    case Grouping::Kind::whole_row:
      return "per row";
    case Grouping::Kind::group:
      return fmt::format("group {}", grouping.cols);
    case Grouping::Kind::block:
      return fmt::format("block {}x{}", grouping.rows, grouping.cols);
  }
  return "";
}

std::string words(const std::optional<ActivationScheme>& activation) {
  if (!activation) return "16-bit activations";
  return fmt::format("{} activations {} {}", name(activation->format), activation->dynamic ? "dynamic" : "static",
                     name(activation->granularity));
}

}  // namespace

std::string scheme_name(const Scheme& scheme) {
  std::string short_name = preset(scheme);
  if (!short_name.empty()) return short_name;
  return fmt::format("{} {}{}, {}", name(scheme.weight.format), words(scheme.weight.grouping),
                     scheme.weight.symmetric ? "" : " asymmetric", words(scheme.activation));
}

}  // namespace gearshift
