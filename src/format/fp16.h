// FP16: IEEE 754 binary16.
//
// bits s/e/m 1/5/10 | bias 15 | max 65504 (0x7BFF) | min normal 2^-14 | min subnormal 2^-24 | infinity 0x7C00; NaN
// above Source: IEEE 754-2019, section 3.6.
#pragma once

#include "format/minifloat.h"

namespace gearshift::format {

inline constexpr Minifloat fp16_format{5, 10, 15, 0x7BFF, true, 0x7E00};
inline constexpr float fp16_max = 65504.0f;
inline constexpr float fp16_min_normal = 0x1p-14f;
inline constexpr float fp16_min_subnormal = 0x1p-24f;

constexpr float decode_fp16(uint16_t code) { return decode_minifloat<fp16_format>(code); }

// To nearest even; 65520 and beyond give infinity. NaN gives the quiet NaN 0x7E00 or 0xFE00, by its sign.
constexpr uint16_t encode_fp16(float x) {
  return static_cast<uint16_t>(encode_minifloat<fp16_format, Overflow::infinity>(x));
}

}  // namespace gearshift::format
