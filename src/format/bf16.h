// BF16: the upper half of an IEEE 754 binary32.
//
// bits s/e/m 1/8/7 | bias 127 | max 0x1.FEp127 (0x7F7F) | min normal 2^-126 | min subnormal 2^-133 | infinity 0x7F80;
// NaN above. Source: the definition above, with the rounding of IEEE 754-2019, section 4.3.1.
#pragma once

#include "format/minifloat.h"

namespace gearshift::format {

inline constexpr Minifloat bf16_format{8, 7, 127, 0x7F7F, true, 0x7FC0};
inline constexpr float bf16_max = 0x1.FEp127f;
inline constexpr float bf16_min_normal = 0x1p-126f;
inline constexpr float bf16_min_subnormal = 0x1p-133f;

// Written out rather than through Minifloat: these stand in inner loops, and the upper half needs no more.
constexpr float decode_bf16(uint16_t code) { return std::bit_cast<float>(static_cast<uint32_t>(code) << 16); }

// To nearest even; past the largest value infinity. NaN stays NaN: quiet, with its sign and its upper payload bits.
constexpr uint16_t encode_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16);
}

}  // namespace gearshift::format
