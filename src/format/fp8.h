// FP8 (e4m3) with fp32 scales: per tensor, per token (row), per group of 128, per channel, per 2-D block.
//
//   x ~ e4m3(code) * scale,   code = e4m3_sat(x / scale), a true division in fp32
// Sources: vLLM csrc/.../quantization/w8a8/fp8, DeepSeek-V3 fine-grained quantization, compressed-tensors.
//
// Non-finite input: an infinite amax makes the scale infinite and the whole row NaN on reconstruction; NaN elements get
// the code of NaN and do not count for the scale.
#pragma once

#include "format/e4m3.h"
#include "format/e8m0.h"
#include "format/range.h"

namespace gearshift::format {

inline constexpr int fp8_group = 128;
inline constexpr float fp8_min_token_scale = 1.0f / (e4m3_max * 512.0f);
inline constexpr float fp8_min_group_amax = 1e-10f;

// Weights (tensor, channel or block) and dynamic per-tensor activations: amax / 448; 1 where that is 0.
constexpr float fp8_scale(float amax) {
  const float scale = amax / e4m3_max;
  return scale > 0 ? scale : 1;
}

// Dynamic per token: max(amax / 448, 1 / (448 * 512)). `amax_limit` caps amax first, values beyond it saturate; 0:
// none.
constexpr float fp8_token_scale(float amax, float amax_limit = 0) {
  const float scale = (amax_limit > 0 && amax_limit < amax ? amax_limit : amax) / e4m3_max;
  return scale > fp8_min_token_scale ? scale : fp8_min_token_scale;
}

// Dynamic per group of 128: max(amax, 1e-10) / 448.
constexpr float fp8_group_scale(float amax) {
  return (amax > fp8_min_group_amax ? amax : fp8_min_group_amax) / e4m3_max;
}

// The same rounded up to a power of two ("ue8m0" scales). REQUIRES: amax finite.
constexpr float fp8_group_scale_ue8m0(float amax) { return pow2(ceil_log2(fp8_group_scale(amax))); }

// REQUIRES: scale > 0.
constexpr uint8_t fp8_encode_value(float x, float scale) { return encode_e4m3(x / scale); }
constexpr float fp8_decode_value(uint8_t code, float scale) { return decode_e4m3(code) * scale; }

// x[count] -> codes[count] with one scale.
constexpr void fp8_encode(const float* x, int64_t count, float scale, uint8_t* codes) {
  for (int64_t i = 0; i < count; ++i) codes[i] = fp8_encode_value(x[i], scale);
}

}  // namespace gearshift::format
