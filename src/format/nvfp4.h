// NVFP4: blocks of 16 e2m1 elements with an e4m3 scale each, and one fp32 scale for the whole tensor.
//
// The tensor-wide scale exists in two directions. `global` (compressed-tensors) is large and divides on reconstruction:
//   x ~ e2m1(code) * e4m3(scale) / global         global = 448 * 6 / amax of the tensor
// `scale_2` (ModelOpt) is its reciprocal and multiplies:
//   x ~ e2m1(code) * e4m3(scale) * scale_2        scale_2 = amax of the tensor / 2688
// Quantizing, all in fp32 and in this order: scale = e4m3_sat(global * (amax16 * (1/6))), code = e2m1(x * (global /
// e4m3(scale))). Sources: vLLM csrc/.../quantization/fp4/nvfp4_utils.cuh, compressed-tensors quantization/utils,
// NVIDIA Model-Optimizer nvfp4 tensor.
//
// Non-finite input: an infinite element gives the largest scale and code 6 with its sign; NaN gives +6 and does not
// count for the scale.
#pragma once

#include <limits>

#include "format/e2m1.h"
#include "format/e4m3.h"
#include "format/range.h"

namespace gearshift::format {

inline constexpr int nvfp4_block = 16;
inline constexpr float nvfp4_range = e4m3_max * e2m1_max;  // 2688
inline constexpr float inv6 = 1.0f / 6;

// ---- tensor-wide scale ----

// compressed-tensors direction; 1 for an all-zero tensor. REQUIRES: amax finite and >= 0.
constexpr float nvfp4_global(float amax) {
  if (amax == 0) return 1;
  const float global = nvfp4_range / amax;
  return global > std::numeric_limits<float>::max() ? std::numeric_limits<float>::max() : global;
}

// ModelOpt direction; 1 for an all-zero tensor (and for one so small that the quotient is no fp32 number).
constexpr float nvfp4_scale_2(float amax) {
  const float scale_2 = amax / nvfp4_range;
  return scale_2 > 0 ? scale_2 : 1;
}

// What multiplies activations when the checkpoint stores ModelOpt's input_scale.
constexpr float nvfp4_global_of_input_scale(float input_scale) { return 1.0f / input_scale; }

// ---- activations, and weights in the compressed-tensors direction ----

// Scale code of a block with largest magnitude `amax`; 0 for a zero or vanishing block. REQUIRES: 0 < global <
// infinity.
constexpr uint8_t nvfp4_scale(float amax, float global) { return encode_e4m3(global * (amax * inv6)); }

// What the elements of a block are multiplied by before e2m1; 0 when the scale is 0, so that all codes become 0.
constexpr float nvfp4_factor(uint8_t scale, float global) {
  const float value = decode_e4m3(scale);
  if (value == 0) return 0;
  const float factor = global / value;
  // Infinity would turn a zero element into NaN.
  return factor > std::numeric_limits<float>::max() ? std::numeric_limits<float>::max() : factor;
}

// Quantizes one block x[count] (count <= 16; fewer at the end of a row) into codes[count], one a byte. Returns the
// scale code. A scale of 0 gives codes 0, not -0.
constexpr uint8_t nvfp4_encode(const float* x, int count, float global, uint8_t* codes) {
  const uint8_t scale = nvfp4_scale(abs_max(x, count), global);
  const float factor = nvfp4_factor(scale, global);
  for (int i = 0; i < count; ++i) codes[i] = factor == 0 ? uint8_t{0} : encode_e2m1(x[i] * factor);
  return scale;
}

// ---- weights as ModelOpt writes them ----

// As nvfp4_encode, in ModelOpt's order of operations: scale = e4m3(amax16 / (6 * scale_2)) within [2^-9, 448], 1.0 for
// a zero block; code = e2m1(x / (e4m3(scale) * scale_2)). REQUIRES: scale_2 > 0.
constexpr uint8_t nvfp4_scale_modelopt(float amax, float scale_2) {
  if (amax == 0) return encode_e4m3(1.0f);
  const float scale = amax / (e2m1_max * scale_2);
  return encode_e4m3(scale < e4m3_min_subnormal ? e4m3_min_subnormal : scale);
}
constexpr uint8_t nvfp4_encode_modelopt(const float* x, int count, float scale_2, uint8_t* codes) {
  const uint8_t scale = nvfp4_scale_modelopt(abs_max(x, count), scale_2);
  const float step = decode_e4m3(scale) * scale_2;
  for (int i = 0; i < count; ++i) codes[i] = step == 0 ? uint8_t{0} : encode_e2m1(x[i] / step);
  return scale;
}

// ---- reconstruction ----

// e2m1(code) * e4m3(scale): at most 6 significant bits, so exact; the tensor-wide scale is the only rounding.
constexpr float nvfp4_block_value(uint8_t code, uint8_t scale) { return decode_e2m1(code) * decode_e4m3(scale); }
constexpr float nvfp4_decode_value(uint8_t code, uint8_t scale, float global) {
  return nvfp4_block_value(code, scale) / global;
}
constexpr float nvfp4_decode_value_modelopt(uint8_t code, uint8_t scale, float scale_2) {
  return nvfp4_block_value(code, scale) * scale_2;
}

}  // namespace gearshift::format
