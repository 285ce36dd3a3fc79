// Made-up activations, and rounding of given ones.
#pragma once

#include "gearshift/prepare.h"

namespace gearshift {

// Fills x. A row's values depend on the seed and its number alone, so that x of M rows begins x of any larger M. Rows
// of eight kinds in turn: plain ones (about normal, mean 0, variance 1), the first of eight with one value in 64 a
// hundred times larger, the fourth all zeros, the sixth subnormal. Plain values have at most 8 significant bits: bf16,
// fp16 and fp32 hold them all. No value is larger than `limit`. The columns from x.cols to x.stride are not written.
// dtype: f32, f16, bf16.
void make_activations(const Matrix& x, uint64_t seed, int threads, float limit);
// The same with plain rows only: for timing, which subnormal numbers would slow down on some processors.
void make_plain_activations(const Matrix& x, uint64_t seed, int threads, float limit);

// The largest activation that the stored scales of these weights were made for; infinity where scales are made at run
// time. Beyond it the checkpoint's arithmetic clips, and a comparison with another arithmetic would say nothing about
// real inputs.
float activation_limit(const LayerWeights& weights);

// A matrix with memory of its own, rows without a gap.
struct OwnedMatrix {
  AlignedBuffer bytes;
  DType dtype = DType::bf16;
  int64_t rows = 0, cols = 0;

  Matrix view() { return {bytes.data(), dtype, rows, cols, cols}; }
  ConstMatrix view() const { return {bytes.data(), dtype, rows, cols, cols}; }
};
// Contents undefined. Error runtime: not enough memory for `what`.
Result<OwnedMatrix> allocate_matrix(DType dtype, int64_t rows, int64_t cols, std::string_view what);

// Element i of a matrix row as a float; and writing one, rounded to nearest even.
float load_element(const void* row, DType dtype, int64_t i);
void store_element(void* row, DType dtype, int64_t i, float value);
int64_t element_bytes(DType dtype);

}  // namespace gearshift
