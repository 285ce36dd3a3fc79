// FP6: e3m2, an element of MXFP6. A code is the low 6 bits of a byte.
//
// bits s/e/m 1/3/2 | bias 3 | max 28 | min normal 0.25 | min subnormal 0.0625 | no infinity, no NaN
// Source: OCP Microscaling Formats (MX) specification v1.0, section 5.3.
#pragma once

#include "format/minifloat.h"

namespace gearshift::format {

inline constexpr Minifloat e3m2_format{3, 2, 3, 0x1F, false, 0x1F};
inline constexpr float e3m2_max = 28.0f;
inline constexpr float e3m2_min_normal = 0.25f;
inline constexpr float e3m2_min_subnormal = 0.0625f;

constexpr float decode_e3m2(uint8_t code) { return decode_minifloat<e3m2_format>(code); }

// To nearest even, saturating: beyond 28 and infinities give 28, NaN gives +28. The sign of zero is kept.
constexpr uint8_t encode_e3m2(float x) {
  return static_cast<uint8_t>(encode_minifloat<e3m2_format, Overflow::saturate>(x));
}

inline constexpr std::array<float, 64> e3m2_table = decode_table<e3m2_format>();

}  // namespace gearshift::format
