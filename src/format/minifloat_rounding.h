// Encoding into a minifloat in a dozen operations without a branch, for code that quantizes by the million: the same
// bits as encode_minifloat and decode_minifloat (format/minifloat.h), by the rounding of fp32 additions.
//
// |x| + 2^s has a unit of the minifloat as its last place when s is chosen by the exponent of x, so the addition rounds
// to nearest even; subtracting 2^s leaves the value. A value times 2^(bias - 127) has the minifloat's exponent in the
// place of fp32's, subnormals included, so a shift leaves the code.
#pragma once

#include "format/minifloat.h"

namespace gearshift::format {

struct MinifloatRounding {
  float most;          // the largest finite value
  uint32_t least;      // bits of the smallest normal value
  uint32_t to_unit;    // added to an exponent's bits: the power of two whose last place is a unit
  float to_code;       // 2^(bias - 127)
  int dropped;         // bits of fp32's mantissa that a code has not
  uint32_t sign, nan;  // sign_bit and nan_code
  bool has_nan;
};

template <Minifloat F>
constexpr MinifloatRounding rounding_of() {
  return {decode_minifloat<F>(F.max_code),
          static_cast<uint32_t>(1 - F.bias + 127) << 23,
          static_cast<uint32_t>(23 - F.mantissa_bits) << 23,
          pow2(F.bias - 127),
          23 - F.mantissa_bits,
          F.sign_bit(),
          F.nan_code,
          F.has_nan()};
}

// |x| rounded to nearest even, saturating; NaN: the largest. REQUIRES: the default rounding mode, subnormals kept.
constexpr float round_magnitude(const MinifloatRounding& r, float x) {
  const float size = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu);
  const float kept = size < r.most ? size : r.most;
  const uint32_t exponent = std::bit_cast<uint32_t>(kept) & 0x7F800000u;
  const float shift = std::bit_cast<float>((exponent < r.least ? r.least : exponent) + r.to_unit);
  return (kept + shift) - shift;
}

// decode(encode(x)).
constexpr float round_minifloat(const MinifloatRounding& r, float x) {
  if (x != x) return r.has_nan ? x : r.most;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(round_magnitude(r, x)) |
                              (std::bit_cast<uint32_t>(x) & 0x80000000u));
}

// encode_minifloat<F, Overflow::saturate>(x).
constexpr uint32_t encode_rounded(const MinifloatRounding& r, float x) {
  const bool is_nan = x != x;
  const uint32_t sign = (std::bit_cast<uint32_t>(x) >> 31) != 0 ? r.sign : 0;
  if (is_nan && !r.has_nan) return r.nan;
  const uint32_t code = std::bit_cast<uint32_t>(round_magnitude(r, x) * r.to_code) >> r.dropped;
  return sign | (is_nan ? r.nan : code);
}

}  // namespace gearshift::format
