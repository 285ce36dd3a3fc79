// E8M0: a power of two, the block scale of MX formats.
//
// bits s/e/m 0/8/0 | bias 127 | max 2^127 (0xFE) | min 2^-127 (0x00, a subnormal float) | no zero, no infinity; NaN
// 0xFF Source: OCP Microscaling Formats (MX) specification v1.0, section 5.4.1.
#pragma once

#include "format/minifloat.h"

namespace gearshift::format {

inline constexpr int e8m0_bias = 127;
inline constexpr int e8m0_max_exponent = 127;
inline constexpr int e8m0_min_exponent = -127;
inline constexpr uint8_t e8m0_nan = 0xFF;

constexpr float decode_e8m0(uint8_t code) {
  return code == e8m0_nan ? std::numeric_limits<float>::quiet_NaN() : pow2(code - e8m0_bias);
}

// Code of 2^exponent, clamped to what the format holds.
constexpr uint8_t encode_e8m0_exponent(int exponent) {
  if (exponent < e8m0_min_exponent) return 0;
  if (exponent > e8m0_max_exponent) return 0xFE;
  return static_cast<uint8_t>(exponent + e8m0_bias);
}

// floor(log2(x)), exact for subnormals too; 128 for infinity. REQUIRES: x > 0.
constexpr int floor_log2(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return bits >= 0x800000u ? static_cast<int>(bits >> 23) - 127 : std::bit_width(bits) - 150;
}

// ceil(log2(x)). REQUIRES: x > 0 and finite.
constexpr int ceil_log2(float x) {
  const int below = floor_log2(x);
  return pow2(below) < x ? below + 1 : below;
}

inline constexpr std::array<float, 256> e8m0_table = [] {
  std::array<float, 256> table{};
  for (uint32_t code = 0; code < 256; ++code) table[code] = decode_e8m0(static_cast<uint8_t>(code));
  return table;
}();

}  // namespace gearshift::format
