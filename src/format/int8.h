// INT8 activations: symmetric and asymmetric, dynamic (per token) and static (a stored scale). Weights: int4.h, 8 bits.
//
//   x ~ (q - zero_point) * scale
//   dynamic symmetric    scale = amax / 127; q = RNE(x * (127 / amax)) saturated to [-128, 127]
//   dynamic asymmetric   scale = (max - min) / 255, zero_point = RNE(-128 - min / scale); q as static
//   static               q = RNE(x / scale) + zero_point saturated to [-128, 127]
// Source: vLLM csrc/.../quantization/w8a8/int8.
//
// The range of a dynamic asymmetric row need not contain 0, so its zero point is an int32 that may lie outside
// [-128, 127]. A zero row has scale 0 and codes 0. NaN becomes the code of 0; an infinite amax gives an infinite scale.
#pragma once

#include "format/int4.h"

namespace gearshift::format {

// x[count] -> q[count]; returns the scale.
constexpr float int8_encode_dynamic(const float* x, int64_t count, int8_t* q) {
  const float amax = abs_max(x, count);
  const float inverse = amax == 0 ? 0 : 127.0f / amax;
  for (int64_t i = 0; i < count; ++i) q[i] = static_cast<int8_t>(clamp_int(round_to_int(x[i] * inverse), -128, 127));
  return amax / 127.0f;
}

// Scale and zero point of one row. A row that is constant, or so far from 0 for its width that fp32 no longer counts
// the steps to it, has no usable range of its own; it gets the range extended to 0 (and {0, 0} when all of it is 0).
constexpr IntScale int8_asymmetric_scale(Range range) {
  // Divided first where the difference of two finite numbers is not.
  const auto width_of = [](float low, float high) {
    const float width = high - low;
    return width <= std::numeric_limits<float>::max() ? width / 255.0f : high / 255.0f - low / 255.0f;
  };
  float low = range.min;
  float scale = width_of(low, range.max);
  if (!(scale > 0) || !(magnitude(low / scale) < 0x1p22f)) {
    low = low < 0 ? low : 0;
    scale = width_of(low, range.max > 0 ? range.max : 0);
  }
  if (!(scale > 0)) return {0, 0};
  return {scale, round_to_int(-128.0f - low / scale)};
}

// One element under a scale that was stored or made by int8_asymmetric_scale; a scale of 0 gives 0.
constexpr int8_t int8_encode_value(float x, IntScale scale) {
  if (scale.scale == 0) return 0;
  return static_cast<int8_t>(clamp_int(int64_t{round_to_int(x / scale.scale)} + scale.zero_point, -128, 127));
}

// x[count] -> q[count] under one scale.
constexpr void int8_encode(const float* x, int64_t count, IntScale scale, int8_t* q) {
  for (int64_t i = 0; i < count; ++i) q[i] = int8_encode_value(x[i], scale);
}

// x[count] -> q[count]; returns the row's scale and zero point.
constexpr IntScale int8_encode_dynamic_asymmetric(const float* x, int64_t count, int8_t* q) {
  const IntScale scale = int8_asymmetric_scale(min_max(x, count));
  int8_encode(x, count, scale, q);
  return scale;
}

}  // namespace gearshift::format
