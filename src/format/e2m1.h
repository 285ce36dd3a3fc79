// FP4: e2m1, the element of NVFP4 and MXFP4. A code is the low nibble of a byte.
//
// bits s/e/m 1/2/1 | bias 1 | max 6 | min normal 1 | min subnormal 0.5 | no infinity, no NaN
// Codes 0..7: 0, 0.5, 1, 1.5, 2, 3, 4, 6; +8 is the negative (8 is -0).
// Source: OCP Microscaling Formats (MX) specification v1.0, section 5.3.
#pragma once

#include "format/minifloat.h"

namespace gearshift::format {

inline constexpr Minifloat e2m1_format{2, 1, 1, 0x7, false, 0x7};
inline constexpr float e2m1_max = 6.0f;
inline constexpr float e2m1_min_normal = 1.0f;
inline constexpr float e2m1_min_subnormal = 0.5f;

constexpr float decode_e2m1(uint8_t code) { return decode_minifloat<e2m1_format>(code); }

// To nearest even, saturating: beyond 6 and infinities give 6, NaN gives +6. The sign of zero is kept.
constexpr uint8_t encode_e2m1(float x) {
  return static_cast<uint8_t>(encode_minifloat<e2m1_format, Overflow::saturate>(x));
}

inline constexpr std::array<float, 16> e2m1_table = decode_table<e2m1_format>();

}  // namespace gearshift::format
