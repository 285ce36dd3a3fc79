// FP6: e2m3, an element of MXFP6. A code is the low 6 bits of a byte.
//
// bits s/e/m 1/2/3 | bias 1 | max 7.5 | min normal 1 | min subnormal 0.125 | no infinity, no NaN
// Source: OCP Microscaling Formats (MX) specification v1.0, section 5.3.
#pragma once

#include "format/minifloat.h"

namespace gearshift::format {

inline constexpr Minifloat e2m3_format{2, 3, 1, 0x1F, false, 0x1F};
inline constexpr float e2m3_max = 7.5f;
inline constexpr float e2m3_min_normal = 1.0f;
inline constexpr float e2m3_min_subnormal = 0.125f;

constexpr float decode_e2m3(uint8_t code) { return decode_minifloat<e2m3_format>(code); }

// To nearest even, saturating: beyond 7.5 and infinities give 7.5, NaN gives +7.5. The sign of zero is kept.
constexpr uint8_t encode_e2m3(float x) {
  return static_cast<uint8_t>(encode_minifloat<e2m3_format, Overflow::saturate>(x));
}

inline constexpr std::array<float, 64> e2m3_table = decode_table<e2m3_format>();

}  // namespace gearshift::format
