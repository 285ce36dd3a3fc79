#include "measure/preset_scheme.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "measure/made_up_layer.h"

namespace gearshift {

namespace {

struct NamedScheme {
  std::string_view name;
  Family like;                     // the family whose most common scheme it is, or begins from
  void (*change)(Scheme& scheme);  // what sets it apart; nullptr: nothing
};

void without_activation(Scheme& scheme) { scheme.activation.reset(); }

void fp8_static(Scheme& scheme) {
  scheme.weight.grouping = {Grouping::Kind::tensor, 1, 0};
  scheme.weight.scale = DType::f32;
  scheme.activation->granularity = Granularity::tensor;
  scheme.activation->dynamic = false;
  scheme.activation->stored_scale = true;
}

void eight_bits(Scheme& scheme) {
  scheme.weight.format = Format::int8;
  scheme.weight.grouping = {Grouping::Kind::row, 1, 0};
}

void asymmetric(Scheme& scheme) { scheme.weight.symmetric = false; }

constexpr std::array kSchemes = {
    NamedScheme{"NVFP4", Family::nvfp4_w4a4, nullptr},
    NamedScheme{"NVFP4A16", Family::nvfp4_w4a16, nullptr},
    NamedScheme{"FP8", Family::fp8_w8a8, fp8_static},
    NamedScheme{"FP8_DYNAMIC", Family::fp8_w8a8, nullptr},
    NamedScheme{"FP8_BLOCK", Family::fp8_block_w8a8, nullptr},
    NamedScheme{"FP8A16", Family::w8a16_fp8, nullptr},
    NamedScheme{"INT8", Family::int8_w8a8, nullptr},
    NamedScheme{"W8A8", Family::int8_w8a8, nullptr},
    NamedScheme{"W4A16", Family::mixed_precision, nullptr},
    NamedScheme{"W4A16_ASYM", Family::mixed_precision, asymmetric},
    NamedScheme{"W8A16", Family::mixed_precision, eight_bits},
    NamedScheme{"W4A8", Family::w4a8, nullptr},
    NamedScheme{"MXFP4", Family::mxfp4, nullptr},
    NamedScheme{"MXFP4A16", Family::mxfp4, without_activation},
    NamedScheme{"MXFP8", Family::mxfp8, nullptr},
    NamedScheme{"MXFP8A16", Family::mxfp8, without_activation},
    NamedScheme{"UNQUANTIZED", Family::bf16, nullptr},
};

}  // namespace

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const NamedScheme& known : kSchemes) names.push_back(known.name);
  return names;
}

Result<Scheme> preset_scheme(std::string_view name) {
  for (const NamedScheme& known : kSchemes) {
    if (lower(known.name) != lower(name)) continue;
    Scheme scheme = common_scheme(known.like);
    if (known.change != nullptr) known.change(scheme);
    return scheme;
  }
  const std::vector<std::string_view> names = preset_names();
  const std::vector<std::string> near = near_names(name, names);
  return ErrorInfo{ErrorCode::usage,
                   "--scheme",
                   "'" + printable(name) + "'",
                   "one of " + join(std::vector<std::string>(names.begin(), names.end()), ", "),
                   near.empty() ? "" : "did you mean " + join(near, ", ") + "?",
                   {}};
}

}  // namespace gearshift
