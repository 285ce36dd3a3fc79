// MX blocks (MXFP4, MXFP6, MXFP8): 32 elements that share one power of two, stored as e8m0.
//
//   x ~ element(code) * 2^(scale - 127)
// Three rules are in use for the shared exponent of a block with largest magnitude amax; emax is the exponent of the
// element's largest value:
//   floor  floor(log2 amax) - emax             OCP MX v1.0, section 6.3; the largest elements may saturate
//   ceil   smallest e with amax <= max * 2^e   ModelOpt, and the round-up conversion of GPUs; nothing saturates
//   even   as floor, after amax moved up to the next binade when its significand is 1.75 or more   compressed-tensors
//          (for MXFP4 and MXFP8 alike), Quark "even"
// Elements are sat(x * 2^-(scale - 127)): a product with a power of two, so one rounding. A zero block has scale 0.
//
// Non-finite input: infinity gives the largest scale and saturates; NaN does not count for the scale and gets the
// element's code for NaN (+max where it has none).
#pragma once

#include "format/e2m1.h"
#include "format/e2m3.h"
#include "format/e3m2.h"
#include "format/e4m3.h"
#include "format/e5m2.h"
#include "format/e8m0.h"
#include "format/range.h"

namespace gearshift::format {

inline constexpr int mx_block = 32;

enum class MxRule : uint8_t { floor, ceil, even };

struct MxElement {
  float max;
  uint8_t (*encode)(float);
  float (*decode)(uint8_t);

  constexpr int emax() const { return floor_log2(max); }
};
inline constexpr MxElement mx_e2m1{e2m1_max, encode_e2m1, decode_e2m1};
inline constexpr MxElement mx_e2m3{e2m3_max, encode_e2m3, decode_e2m3};
inline constexpr MxElement mx_e3m2{e3m2_max, encode_e3m2, decode_e3m2};
inline constexpr MxElement mx_e4m3{e4m3_max, encode_e4m3, decode_e4m3};
inline constexpr MxElement mx_e5m2{e5m2_max, encode_e5m2, decode_e5m2};

// Scale code of a block; 0 when amax is 0. REQUIRES: amax >= 0.
constexpr uint8_t mx_scale(float amax, MxRule rule, const MxElement& element) {
  if (amax == 0) return 0;
  const int exponent = floor_log2(amax);
  // Significands compare as the lower bits of the floats do. Subnormal amax clamps to the smallest scale either way.
  const uint32_t significand = std::bit_cast<uint32_t>(amax) & 0x7FFFFFu;
  const uint32_t element_significand = std::bit_cast<uint32_t>(element.max) & 0x7FFFFFu;
  const bool up =
      (rule == MxRule::ceil && significand > element_significand) || (rule == MxRule::even && significand >= 0x600000u);
  return encode_e8m0_exponent(exponent + (up ? 1 : 0) - element.emax());
}

// What the elements of a block are multiplied by before encoding: 2^-(scale - 127). REQUIRES: scale is not NaN (0xFF).
constexpr float mx_factor(uint8_t scale) { return pow2(e8m0_bias - scale); }

// Quantizes one block x[count] (count <= 32) into codes[count], one a byte. Returns the scale code.
constexpr uint8_t mx_encode(const float* x, int count, MxRule rule, const MxElement& element, uint8_t* codes) {
  const uint8_t scale = mx_scale(abs_max(x, count), rule, element);
  const float factor = mx_factor(scale);
  for (int i = 0; i < count; ++i) codes[i] = element.encode(x[i] * factor);
  return scale;
}

constexpr float mx_decode_value(uint8_t code, uint8_t scale, const MxElement& element) {
  return element.decode(code) * decode_e8m0(scale);
}

}  // namespace gearshift::format
