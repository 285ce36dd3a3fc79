// Eight columns of x in registers, quantized by the recipes of src/format: the same bits as on the host.
#pragma once

#include "format/fp8.h"
#include "format/int8.h"
#include "format/minifloat_rounding.h"
#include "format/mx.h"
#include "format/nvfp4.h"
#include "kernel/cuda/stage/prepare_x.h"

namespace gearshift::cuda {

inline constexpr int kColumns = 8;  // of one thread at a time: 16 bytes of bf16

struct Block {
  float v[kColumns];
};

// What elements become; where their scales come from is the recipe's.
enum class Quantizer { none, nvfp4, mx, e4m3, int8, int8_affine };

__device__ inline format::MinifloatRounding rounding_to(Format element) {
  switch (element) {
    case Format::e2m1:
      return format::rounding_of<format::e2m1_format>();
    case Format::e2m3:
      return format::rounding_of<format::e2m3_format>();
    case Format::e3m2:
      return format::rounding_of<format::e3m2_format>();
    case Format::e5m2:
      return format::rounding_of<format::e5m2_format>();
    default:
      return format::rounding_of<format::e4m3_format>();
  }
}
__device__ inline format::MxRule mx_rule(ScaleRule rule) {
  if (rule == ScaleRule::e8m0_ceil) return format::MxRule::ceil;
  return rule == ScaleRule::e8m0_even ? format::MxRule::even : format::MxRule::floor;
}

// x in units of its scale, as a code (in the bits of the float) or as the value of the code.
template <bool Codes>
__device__ float round_to(const format::MinifloatRounding& r, float x) {
  return Codes ? __uint_as_float(format::encode_rounded(r, x)) : format::round_minifloat(r, x);
}
template <bool Codes>
__device__ float integer(int code) {
  return Codes ? __int_as_float(code) : static_cast<float>(code);
}
// The conversion rounds to nearest even, saturates, and makes 0 of NaN, as format::round_to_int does.
template <bool Codes>
__device__ float round_to_int8(float x) {
  return integer<Codes>(min(max(__float2int_rn(x), -128), 127));
}

struct GroupScale {
  float value;
  uint8_t byte;  // nvfp4, mx: its code
};

// A group whose largest magnitude is amax, in units of the scale that is returned.
template <Quantizer Q, bool Codes>
__device__ GroupScale quantize_group(const PrepareX& p, const format::MinifloatRounding& element, float amax,
                                     Block& block) {
  if constexpr (Q == Quantizer::nvfp4) {
    const uint8_t scale = format::nvfp4_scale(amax, p.global);
    const float factor = format::nvfp4_factor(scale, p.global);
    for (float& v : block.v) v = factor == 0 ? 0 : round_to<Codes>(element, v * factor);
    return {format::decode_e4m3(scale), scale};
  } else if constexpr (Q == Quantizer::mx) {
    const uint8_t scale = format::mx_scale(amax, mx_rule(p.rule), {element.most, nullptr, nullptr});
    const float factor = format::mx_factor(scale);
    for (float& v : block.v) v = round_to<Codes>(element, v * factor);
    return {format::decode_e8m0(scale), scale};
  } else if constexpr (Q == Quantizer::e4m3) {
    const float scale =
        p.rule == ScaleRule::amax_pow2 ? format::fp8_group_scale_ue8m0(amax) : format::fp8_group_scale(amax);
    for (float& v : block.v) v = round_to<Codes>(element, v / scale);
    return {scale, 0};
  } else {
    const float inverse = amax == 0 ? 0 : 127.0f / amax;
    for (float& v : block.v) v = round_to_int8<Codes>(v * inverse);
    return {amax / 127.0f, 0};
  }
}

// What holds for a whole row, or for the tensor.
struct RowScale {
  float scale = 1, inverse = 0;
  int32_t zero_point = 0;
};

template <Quantizer Q, bool Codes>
__device__ void quantize_with(const format::MinifloatRounding& element, const RowScale& s, Block& block) {
  for (float& v : block.v) {
    if constexpr (Q == Quantizer::e4m3) v = s.scale > 0 ? round_to<Codes>(element, v / s.scale) : 0;
    if constexpr (Q == Quantizer::int8) v = round_to_int8<Codes>(v * s.inverse);
    if constexpr (Q == Quantizer::int8_affine) {
      int code = s.zero_point;
      if (s.scale > 0) code = format::clamp_int(int64_t{__float2int_rn(v / s.scale)} + s.zero_point, -128, 127);
      v = integer<Codes>(Codes ? code : code - s.zero_point);
    }
  }
}

}  // namespace gearshift::cuda
