// x on its way to kernels over wide_rows16: rows loaded and quantized by the checkpoint's recipe, then tiles.
#pragma once

#include "gearshift/kernel.h"
#include "kernel/cpu/stage/wide.h"

namespace gearshift {

// One row of x, ready for the product: y = factor * (sum over k of value[k] * code[k] * scale ...) + bias.
struct WideRow {
  double factor = 1;
  // Integers: values are codes plus `shift`, which brings a range of zero points back into eight bits; `sum` is that of
  // the codes.
  int32_t shift = 0, sum = 0;
};

struct WideRecipe {
  const RunArgs* args;
  const PartWeights* part;
  ActivationUse use;
  float tensor_scale;  // of a dynamic per-tensor recipe
  WideX x;
  int64_t columns;  // padded
  bool x_scales;    // scales of activation groups are left out of the values
};

// Writes columns * wide_x_bytes(x) bytes to `values` and, where x_scales, a scale per activation group to `scales`.
// `scratch`: 2 * columns floats.
WideRow ready_wide_row(const WideRecipe& recipe, Isa isa, int64_t row, uint8_t* values, float* scales, float* scratch);

// Sixteen integer sums of a row of x with unsigned codes, in place: the sums of (code - 128) * (value of x), as fp32.
// `of_codes`: int32 [16], the sums of code - 128.
void wide_integers(Isa isa, const WideRow& row, const uint8_t* of_codes, float* sums);

// Rows of `row_bytes` bytes each -> columns [k0, k0 + count) of a tile of w rows; `to` is the tile at k0.
void wide_tile(WideX x, const uint8_t* rows, int64_t row_bytes, int64_t w, int64_t k0, int64_t count, uint8_t* to);

// Whether every value that enters the product is exact in bf16.
bool wide_exact_in_bf16(const Scheme& scheme, ActivationUse use, DType dtype, bool x_scales);

}  // namespace gearshift
