// Integer weights of 2 to 8 bits in groups, with or without zero point.
//
//   x ~ (q - zero_point) * scale,   -2^(b-1) <= q, zero_point <= 2^(b-1) - 1,   zero_point 0 when symmetric
//   symmetric   scale = amax / ((2^b - 1) / 2), that is amax / 7.5 for 4 bits and amax / 127.5 for 8
//   asymmetric  scale = (max - min) / (2^b - 1) with min <= 0 <= max, zero_point = RNE(-2^(b-1) - min / scale), clamped
//   q = clamp(RNE(x / scale) + zero_point)
// Source: compressed-tensors quantization/utils. NaN gives the code of 0; infinities saturate under a finite scale.
#pragma once

#include <limits>

#include "format/range.h"

namespace gearshift::format {

struct IntScale {
  float scale = 0;
  int32_t zero_point = 0;
};

constexpr int32_t int_min(int bits) { return -(1 << (bits - 1)); }
constexpr int32_t int_max(int bits) { return (1 << (bits - 1)) - 1; }

// 1 where the quotient is 0. REQUIRES: amax finite and >= 0.
constexpr float int_symmetric_scale(float amax, int bits) {
  const float scale = amax / (static_cast<float>((1 << bits) - 1) / 2);
  return scale > 0 ? scale : 1;
}

// {1, 0} where the range is empty. REQUIRES: min and max finite.
constexpr IntScale int_asymmetric_scale(Range range, int bits) {
  const float low = range.min < 0 ? range.min : 0;
  const float high = range.max > 0 ? range.max : 0;
  const auto steps = static_cast<float>((1 << bits) - 1);
  // Divided first where the difference of two finite numbers is not.
  const float width = high - low;
  const float scale = width <= std::numeric_limits<float>::max() ? width / steps : high / steps - low / steps;
  if (!(scale > 0)) return {1, 0};
  const int32_t zero_point = round_to_int(static_cast<float>(int_min(bits)) - low / scale);
  return {scale, clamp_int(zero_point, int_min(bits), int_max(bits))};
}

// REQUIRES: scale > 0.
constexpr int32_t int_encode_value(float x, IntScale scale, int bits) {
  return clamp_int(int64_t{round_to_int(x / scale.scale)} + scale.zero_point, int_min(bits), int_max(bits));
}
constexpr float int_decode_value(int32_t q, IntScale scale) {
  return static_cast<float>(q - scale.zero_point) * scale.scale;
}

// ---- how q sits in a file ----

// Offset binary, q + 2^(b-1): compressed-tensors pack-quantized, GPTQ, AWQ. Unsigned zero points shift the same way.
constexpr uint8_t int_to_offset(int32_t q, int bits) { return static_cast<uint8_t>(q - int_min(bits)); }
constexpr int32_t int_from_offset(uint32_t code, int bits) { return static_cast<int32_t>(code) + int_min(bits); }

// Two's complement in the low `bits` bits: ModelOpt, Quark. Bits above are ignored.
constexpr uint8_t int_to_twos_complement(int32_t q, int bits) {
  return static_cast<uint8_t>(static_cast<uint32_t>(q) & ((1u << bits) - 1));
}
constexpr int32_t int_from_twos_complement(uint32_t code, int bits) {
  const uint32_t low = code & ((1u << bits) - 1);
  return static_cast<int32_t>(low) - ((low >> (bits - 1)) != 0 ? 1 << bits : 0);
}

}  // namespace gearshift::format
