// Activations before they are multiplied: the checkpoint's quantizer, its result as codes and scales for kernels that
// multiply those, or written back as 16- or 32-bit floats for those that do not.
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
constexpr bool by_group(XRecipe recipe) { return recipe >= XRecipe::nvfp4 && recipe <= XRecipe::int8_group; }
constexpr bool by_token(XRecipe recipe) {
  return recipe >= XRecipe::fp8_token && recipe <= XRecipe::int8_token_asymmetric;
}
constexpr bool by_tensor(XRecipe recipe) { return recipe >= XRecipe::fp8_tensor; }

// Where the byte of row m and group g lies. Tiles of 128 rows x 4 groups are what block-scaled tensor cores read
// (cuBLAS documentation, "1D Block Scaling Factors Layout"): tiles follow each other along the groups, inside one a
// byte is at (m % 32) * 16 + (m % 128) / 32 * 4 + g % 4.
enum class ScaleOrder : uint8_t {
  rows,  // groups of a row side by side, rows padded to 4 bytes
  tiles_128x4
};

// What an expert's checkpoint says of its activations.
struct ExpertScalars {
  float global = 1, scale = 0;  // as in PrepareX
  int32_t zero_point = 0;
  float factor = 1;  // of its results
};
// Rows that a router chose, sorted by expert.
struct ChosenRows {
  const int32_t* count = nullptr;          // how many of the rows there are; nullptr: all, and none of the below
  const int32_t* source = nullptr;         // [rows]: which row of x; nullptr: its own
  const int32_t* expert = nullptr;         // [rows]
  const ExpertScalars* scalars = nullptr;  // [experts]; nullptr: all experts have those of PrepareX
};

struct PrepareX {
  // x[rows, k], bf16 or f16
  const void* x = nullptr;
  DType dtype = DType::bf16;
  int64_t rows = 0, k = 0, stride = 0;
  const float* pre_scale = nullptr;  // [K]; nullptr: none
  ChosenRows chosen = {};
  const int32_t* gather = nullptr;  // [K]: which column of x (and of the pre-scale) comes here; nullptr: its own
  // out[rows, columns >= k]; columns past k become 0. bf16, f16 or f32 values; or u8: codes, a byte each (of four bits:
  // two in a byte, the even column low). columns a multiple of 8.
  void* out = nullptr;
  DType out_dtype = DType::bf16;
  int64_t columns = 0;
  // Scales of groups leave the values, always where out_dtype is u8: fp32 ones (fp8_group, int8_group) lie at
  // row * group_scale_row + group * group_scale_step, bytes (nvfp4: e4m3, mx: e8m0) in `scale_order`. nullptr: values
  // hold them.
  float* group_scales = nullptr;
  int64_t group_scale_row = 0, group_scale_step = 1;
  uint8_t* scale_bytes = nullptr;
  ScaleOrder scale_order = ScaleOrder::rows;
  int32_t* row_sums = nullptr;     // [rows] of int8 codes: what zero points of weights are multiplied by; u8 only
  int32_t* zero_points = nullptr;  // [rows] of int8_token_asymmetric; codes then keep theirs; u8 only
  float* token_factor = nullptr;   // [rows]: what a row's results are multiplied by; nullptr: not asked for

  XRecipe recipe = XRecipe::none;
  Format format = Format::e4m3;  // of mx
  ScaleRule rule = ScaleRule::amax;
  int64_t group = 0;
  float amax_limit = 0;
  float global = 1;        // nvfp4: x is multiplied by it first
  float scale = 0;         // *_tensor: the stored scale; 0: made from amax
  int32_t zero_point = 0;  // int8_tensor, stored
  bool has_zero_point = false;
  const float* amax = nullptr;  // the largest |x| of some rows each; see find_amax
  int amax_count = 0;
  bool blocks_of_16_bytes = false;  // set by the functions below
};

// Queues it. Values are codes times group scales; scales of whole rows or tensors go to token_factor, never into the
// values.
bool prepare_x(PrepareX args, void* stream);
// Queues zero bytes.
bool clear_bytes(uint8_t* at, int64_t count, void* stream);
// Queues the search for max |x| (NaN passed over), for the recipes that need the whole tensor: into amax[most_amax],
// which `args` then points at.
inline constexpr int64_t most_amax = 256;
bool find_amax(PrepareX& args, float* amax, void* stream);

}  // namespace gearshift::cuda
