// FP8: e4m3 ("fn": finite and NaN), the element of FP8 schemes and MXFP8 and the block scale of NVFP4.
//
// bits s/e/m 1/4/3 | bias 7 | max 448 (0x7E) | min normal 2^-6 | min subnormal 2^-9 | no infinity; NaN 0x7F, 0xFF
// Source: OCP 8-bit Floating Point specification (OFP8) v1.0, section 5.
#pragma once

#include "format/minifloat.h"

namespace gearshift::format {

inline constexpr Minifloat e4m3_format{4, 3, 7, 0x7E, false, 0x7F};
inline constexpr float e4m3_max = 448.0f;
inline constexpr float e4m3_min_normal = 0x1p-6f;
inline constexpr float e4m3_min_subnormal = 0x1p-9f;

constexpr float decode_e4m3(uint8_t code) { return decode_minifloat<e4m3_format>(code); }

// To nearest even, saturating: beyond 448 and infinities give 448. NaN gives 0x7F or 0xFF, by its sign.
// (A plain cast, as the specification and frameworks define it, gives NaN from 464 up; quantization clamps first.)
constexpr uint8_t encode_e4m3(float x) {
  return static_cast<uint8_t>(encode_minifloat<e4m3_format, Overflow::saturate>(x));
}

inline constexpr std::array<float, 256> e4m3_table = decode_table<e4m3_format>();

}  // namespace gearshift::format
