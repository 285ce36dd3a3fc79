// The words of plans for the values of layer.h, and the family that a scheme leads to.
#include <array>

#include "gearshift/layer.h"

namespace gearshift {
namespace {

constexpr std::array<std::string_view, 20> kFormats = {"float", "e4m3",  "e5m2",  "e2m1",  "e2m3",  "e3m2", "int2",
                                                       "int3",  "int4",  "int5",  "int6",  "int7",  "int8", "uint2",
                                                       "uint3", "uint4", "uint5", "uint6", "uint7", "uint8"};
constexpr std::array<int, 20> kFormatBits = {0, 8, 8, 4, 6, 6, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4, 5, 6, 7, 8};

constexpr std::array kFamilies = {Family::bf16,           Family::w8a16_fp8,       Family::fp8_w8a8,
                                  Family::fp8_block_w8a8, Family::mxfp8,           Family::mxfp6,
                                  Family::mxfp4,          Family::nvfp4_w4a4,      Family::nvfp4_w4a16,
                                  Family::int8_w8a8,      Family::mixed_precision, Family::w4a8};
constexpr std::array<std::string_view, kFamilies.size()> kFamilyNames = {
    "bf16",  "w8a16_fp8",  "fp8_w8a8",    "fp8_block_w8a8", "mxfp8",           "mxfp6",
    "mxfp4", "nvfp4_w4a4", "nvfp4_w4a16", "int8_w8a8",      "mixed_precision", "w4a8"};

constexpr std::array<std::string_view, 12> kStorages = {
    "dense", "nibbles",      "dense_bits",  "word_bits",     "gptq_v1",   "gptq_v2",
    "awq",   "rows_in_byte", "quark_order", "quark_reorder", "fp6_bytes", "dense_transposed"};
constexpr std::array<std::string_view, 3> kGranularities = {"tensor", "token", "token_group"};
constexpr std::array<std::string_view, 5> kGroupings = {"tensor", "row", "group", "whole_row", "block"};

}  // namespace

std::string_view name(Format format) { return kFormats[static_cast<size_t>(format)]; }
int bits(Format format) { return kFormatBits[static_cast<size_t>(format)]; }
std::string_view name(Family family) { return kFamilyNames[static_cast<size_t>(family)]; }
std::span<const Family> all_families() { return kFamilies; }
std::string_view name(Storage storage) { return kStorages[static_cast<size_t>(storage)]; }
std::string_view name(Grouping::Kind kind) { return kGroupings[static_cast<size_t>(kind)]; }
std::string_view name(LayerKind kind) { return kind == LayerKind::linear ? "linear" : "experts"; }
std::string_view name(Granularity granularity) { return kGranularities[static_cast<size_t>(granularity)]; }

std::optional<Family> parse_family(std::string_view name) {
  for (size_t i = 0; i < kFamilyNames.size(); ++i) {
    if (kFamilyNames[i] == name) return kFamilies[i];
  }
  return std::nullopt;
}

Family family_of(const Scheme& scheme) {
  const WeightScheme& weight = scheme.weight;
  const bool exponents = weight.scale == DType::f8_e8m0 && weight.grouping.kind == Grouping::Kind::group;
  switch (weight.format) {
    case Format::float_:
      return Family::bf16;
    case Format::e2m1:
      if (exponents) return Family::mxfp4;
      if (!scheme.activation) return Family::nvfp4_w4a16;
      return scheme.activation->format == Format::e2m1 ? Family::nvfp4_w4a4 : Family::w4a8;
    case Format::e2m3:
    case Format::e3m2:
      return Family::mxfp6;
    case Format::e4m3:
    case Format::e5m2:
      if (exponents) return Family::mxfp8;
      if (!scheme.activation) return Family::w8a16_fp8;
      return scheme.activation->granularity == Granularity::token_group ? Family::fp8_block_w8a8 : Family::fp8_w8a8;
    default:
      if (!scheme.activation) return Family::mixed_precision;
      return weight.format == Format::int8 && scheme.activation->format == Format::int8 ? Family::int8_w8a8
                                                                                        : Family::w4a8;
  }
}

}  // namespace gearshift
