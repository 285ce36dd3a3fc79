// FP8: e5m2, an element of MXFP8.
//
// bits s/e/m 1/5/2 | bias 15 | max 57344 (0x7B) | min normal 2^-14 | min subnormal 2^-16 | infinity 0x7C; NaN 0x7D-0x7F
// Source: OCP 8-bit Floating Point specification (OFP8) v1.0, section 5.
#pragma once

#include "format/minifloat.h"

namespace gearshift::format {

inline constexpr Minifloat e5m2_format{5, 2, 15, 0x7B, true, 0x7F};
inline constexpr float e5m2_max = 57344.0f;
inline constexpr float e5m2_min_normal = 0x1p-14f;
inline constexpr float e5m2_min_subnormal = 0x1p-16f;

constexpr float decode_e5m2(uint8_t code) { return decode_minifloat<e5m2_format>(code); }

// To nearest even, saturating: beyond 57344 and infinities give 57344. NaN gives 0x7F or 0xFF, by its sign.
constexpr uint8_t encode_e5m2(float x) {
  return static_cast<uint8_t>(encode_minifloat<e5m2_format, Overflow::saturate>(x));
}

inline constexpr std::array<float, 256> e5m2_table = decode_table<e5m2_format>();

}  // namespace gearshift::format
