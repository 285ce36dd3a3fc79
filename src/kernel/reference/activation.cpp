#include "kernel/reference/activation.h"

#include <algorithm>
#include <cstring>

#include "format/bf16.h"
#include "format/fp16.h"
#include "format/fp8.h"
#include "format/int8.h"
#include "format/mx.h"
#include "format/nvfp4.h"
#include "kernel/parts.h"

namespace gearshift {

namespace {

float load_value(const uint8_t* base, int64_t index, DType dtype) {
  if (dtype == DType::f32) {
    float value;
    std::memcpy(&value, base + index * 4, 4);
    return value;
  }
  uint16_t code;
  std::memcpy(&code, base + index * 2, 2);
  return dtype == DType::f16 ? format::decode_fp16(code) : format::decode_bf16(code);
}

format::MxElement mx_element(Format element) {
  switch (element) {
    case Format::e2m1:
      return format::mx_e2m1;
    case Format::e2m3:
      return format::mx_e2m3;
    case Format::e3m2:
      return format::mx_e3m2;
    case Format::e5m2:
      return format::mx_e5m2;
    default:
      return format::mx_e4m3;
  }
}

bool is_mx(const ActivationScheme& scheme) {
  return scheme.rule == ScaleRule::e8m0_floor || scheme.rule == ScaleRule::e8m0_ceil ||
         scheme.rule == ScaleRule::e8m0_even;
}

format::MxRule mx_rule(ScaleRule rule) {
  if (rule == ScaleRule::e8m0_ceil) return format::MxRule::ceil;
  return rule == ScaleRule::e8m0_even ? format::MxRule::even : format::MxRule::floor;
}

float quantize_mx_block(const ActivationScheme& scheme, float* values, int64_t count) {
  const format::MxElement element = mx_element(scheme.format);
  const uint8_t scale = format::mx_scale(format::abs_max(values, count), mx_rule(scheme.rule), element);
  const float factor = format::mx_factor(scale);
  for (int64_t i = 0; i < count; ++i) values[i] = element.decode(element.encode(values[i] * factor));
  return format::decode_e8m0(scale);
}

float quantize_nvfp4_block(float global, float* values, int64_t count) {
  const uint8_t scale = format::nvfp4_scale(format::abs_max(values, count), global);
  const float factor = format::nvfp4_factor(scale, global);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = factor == 0 ? 0 : format::decode_e2m1(format::encode_e2m1(values[i] * factor));
  }
  return format::decode_e4m3(scale);
}

void quantize_fp8(float scale, float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = format::e4m3_table[format::fp8_encode_value(values[i], scale)];
}

float int8_symmetric(float* values, int64_t count) {
  const float amax = format::abs_max(values, count);
  const float inverse = amax == 0 ? 0 : 127.0f / amax;
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(format::clamp_int(format::round_to_int(values[i] * inverse), -128, 127));
  }
  return amax / 127.0f;
}

void int8_with_zero_point(format::IntScale scale, float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    values[i] = scale.scale == 0
                    ? 0
                    : static_cast<float>(format::int8_encode_value(values[i], scale) - int64_t{scale.zero_point});
  }
}

float int8_asymmetric(float* values, int64_t count) {
  const format::IntScale scale = format::int8_asymmetric_scale(format::min_max(values, count));
  int8_with_zero_point(scale, values, count);
  return scale.scale;
}

// One scale for values[count], made now. REQUIRES: scheme.dynamic.
float quantize_dynamic(const ActivationScheme& scheme, float* values, int64_t count) {
  if (is_mx(scheme)) return quantize_mx_block(scheme, values, count);
  if (scheme.format == Format::int8) {
    return scheme.symmetric ? int8_symmetric(values, count) : int8_asymmetric(values, count);
  }
  const float amax = format::abs_max(values, count);
  float scale;
  if (scheme.granularity == Granularity::token_group) {
    scale = scheme.rule == ScaleRule::amax_pow2 ? format::fp8_group_scale_ue8m0(amax) : format::fp8_group_scale(amax);
  } else {
    scale = scheme.amax_limit > 0 ? format::fp8_token_scale(amax, scheme.amax_limit) : format::fp8_token_scale(amax);
  }
  quantize_fp8(scale, values, count);
  return scale;
}

bool is_nvfp4(const ActivationScheme& scheme) { return scheme.format == Format::e2m1 && !is_mx(scheme); }

}  // namespace

bool quantizes(const Scheme& scheme, ActivationUse use) {
  return use == ActivationUse::as_checkpoint && scheme.quantized && scheme.activation.has_value();
}

ActivationGroups activation_groups(const Scheme& scheme, int64_t k, ActivationUse use) {
  const int64_t group = quantizes(scheme, use) && scheme.activation->granularity == Granularity::token_group
                            ? scheme.activation->group
                            : 0;
  if (group <= 0) return {k, 1};
  return {group, (k + group - 1) / group};
}

bool same_activations(const PartWeights& a, const PartWeights& b) {
  const auto same_bytes = [](ByteView x, ByteView y) {
    return x.size() == y.size() && (x.data() == y.data() || std::equal(x.begin(), x.end(), y.begin()));
  };
  return a.input_scale == b.input_scale && a.input_zero_point == b.input_zero_point &&
         a.pre_scale_dtype == b.pre_scale_dtype && same_bytes(a.pre_scale, b.pre_scale);
}

int64_t activation_versions(const LayerSpec& layer, ActivationUse use) {
  const bool stored = quantizes(layer.scheme, use) && layer.scheme.activation->stored_scale;
  if (!stored && !layer.scheme.pre_scale) return 1;
  return static_cast<int64_t>(part_count(layer));
}

size_t activation_version(const LayerWeights& weights, size_t part, int64_t versions) {
  if (versions == 1) return 0;
  size_t first = 0;
  while (!same_activations(weights.parts[first], weights.parts[part])) ++first;
  return first;
}

void load_row(const ConstMatrix& x, int64_t row, int64_t k0, int64_t count, const PartWeights& part, float* out) {
  const int64_t first = row * x.stride + k0;
  const auto* base = static_cast<const uint8_t*>(x.data);
  if (x.dtype == DType::f32) {
    std::memcpy(out, base + first * 4, static_cast<size_t>(count) * 4);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = load_value(base, first + i, x.dtype);
  }
  if (part.pre_scale.empty()) return;
  for (int64_t i = 0; i < count; ++i) out[i] *= load_value(part.pre_scale.data(), k0 + i, part.pre_scale_dtype);
}

float dynamic_tensor_scale(const Scheme& scheme, const ConstMatrix& x, const PartWeights& part, ActivationUse use,
                           float* scratch) {
  if (!quantizes(scheme, use)) return 0;
  const ActivationScheme& activation = *scheme.activation;
  if (!activation.dynamic || activation.granularity != Granularity::tensor) return 0;
  float amax = 0;
  for (int64_t row = 0; row < x.rows; ++row) {
    load_row(x, row, 0, x.cols, part, scratch);
    amax = std::max(amax, format::abs_max(scratch, x.cols));
  }
  return activation.format == Format::int8 ? amax / 127.0f : format::fp8_scale(amax);
}

float nvfp4_input_global(const ActivationScheme& scheme, const PartWeights& part) {
  if (!scheme.stored_scale) return 1;
  return scheme.stored_multiplies ? part.input_scale : format::nvfp4_global_of_input_scale(part.input_scale);
}

double nvfp4_input_factor(const ActivationScheme& scheme, const PartWeights& part) {
  if (!scheme.stored_scale) return 1;
  return scheme.stored_multiplies ? 1.0 / part.input_scale : part.input_scale;
}

double quantize_row(const Scheme& scheme, const PartWeights& part, ActivationUse use, float tensor_scale, float* values,
                    int64_t k, float* scales) {
  scales[0] = 1;
  if (!quantizes(scheme, use)) return 1;
  const ActivationScheme& activation = *scheme.activation;
  const ActivationGroups groups = activation_groups(scheme, k, use);
  if (is_nvfp4(activation)) {
    const float global = nvfp4_input_global(activation, part);
    for (int64_t g = 0; g < groups.count; ++g) {
      const int64_t first = g * groups.group;
      scales[g] = quantize_nvfp4_block(global, values + first, std::min(groups.group, k - first));
    }
    return nvfp4_input_factor(activation, part);
  }
  if (activation.granularity == Granularity::token_group) {
    for (int64_t g = 0; g < groups.count; ++g) {
      const int64_t first = g * groups.group;
      scales[g] = quantize_dynamic(activation, values + first, std::min(groups.group, k - first));
    }
    return 1;
  }
  if (activation.dynamic && activation.granularity == Granularity::token)
    return quantize_dynamic(activation, values, k);
  const float scale = activation.dynamic ? tensor_scale : part.input_scale;
  if (!(scale > 0)) {  // all of x is zero
    std::fill(values, values + k, 0.0f);
    return 0;
  }
  if (activation.format == Format::int8) {
    int8_with_zero_point({scale, activation.dynamic ? 0 : part.input_zero_point}, values, k);
  } else {
    quantize_fp8(scale, values, k);
  }
  return scale;
}

}  // namespace gearshift
