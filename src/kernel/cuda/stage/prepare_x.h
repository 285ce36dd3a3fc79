// Activations before they are multiplied: the checkpoint's quantizer, its result written back as 16- or 32-bit floats.
#pragma once

#include <cstdint>

#include "gearshift/kernel.h"

namespace gearshift::cuda {

enum class XRecipe : uint8_t {
  none,        // x, times the pre-scale
  nvfp4,       // e2m1 with an e4m3 scale per group
  mx,          // `format` with a power of two per group
  fp8_group,   // e4m3 with an fp32 scale per group
  int8_group,  // int8 with an fp32 scale per group, symmetric
  fp8_token,
  int8_token,
  int8_token_asymmetric,  // a scale per row, made now
  fp8_tensor,
  int8_tensor  // one scale: `scale`, or made from `amax` of the whole tensor
};

struct PrepareX {
  // x[rows, k]
  const void* x = nullptr;
  DType dtype = DType::bf16;
  int64_t rows = 0, k = 0, stride = 0;
  const float* pre_scale = nullptr;  // [K]; nullptr: none
  // out[rows, columns >= k], bf16 or f32; columns past k become 0
  void* out = nullptr;
  DType out_dtype = DType::bf16;
  int64_t columns = 0;
  float* token_factor = nullptr;  // [rows]: what a row's results are multiplied by; nullptr: not asked for

  XRecipe recipe = XRecipe::none;
  Format format = Format::e4m3;  // of mx
  ScaleRule rule = ScaleRule::amax;
  int64_t group = 0;
  float amax_limit = 0;
  float global = 1;        // nvfp4: x is multiplied by it first
  float scale = 0;         // *_tensor: the stored scale; 0: made from amax
  int32_t zero_point = 0;  // int8_tensor, stored
  bool has_zero_point = false;
  const uint32_t* amax = nullptr;  // bits of the largest |x|; see find_amax
};

// Queues it. Values are codes times group scales; scales of whole rows or tensors go to token_factor, never into the
// values.
bool prepare_x(const PrepareX& args, void* stream);
// Bits of max |x| (NaN passed over) into *amax, for the recipes that need the whole tensor.
bool find_amax(const PrepareX& args, uint32_t* amax, void* stream);

}  // namespace gearshift::cuda
