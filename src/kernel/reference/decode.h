// Weights as a checkpoint stores them, read one row at a time: w[n,k] = code[n,k] * scale[n,k], then times or over the
// tensor-wide scale. Reading codes is exact in fp32; what is rounded is left to the caller.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// One part of a layer. Borrows everything; cheap to make, allocates nothing.
class StoredWeights {
 public:
  StoredWeights(const LayerWeights& weights, size_t part);

  int64_t n() const { return part_->n; }
  int64_t k() const { return k_; }

  // Bits of one stored code, low bits first, before any meaning. Not for float weights.
  uint32_t code_bits(int64_t n, int64_t k) const;
  // The same of columns 0 to K - 1, one a byte.
  void code_row(int64_t n, uint8_t* out) const;
  // Values of codes in units of the scale, zero points subtracted: columns [k0, k0 + count) of row n. Float weights as
  // they are.
  void codes(int64_t n, int64_t k0, int64_t count, float* out) const;

  // 1 where the weight has no scales.
  float scale(int64_t n, int64_t group) const;
  // Where it lies among the stored scales.
  int64_t scale_index(int64_t n, int64_t group) const;
  // What codes of a group are taken from; 0 where their own meaning is centred.
  int32_t zero_point(int64_t n, int64_t group) const;
  int64_t group_of(int64_t k) const;
  // Columns from k on, at most `limit`, that are in the group of k (1 at a time where an index assigns them).
  int64_t run_of_group(int64_t k, int64_t limit) const;
  bool one_scale_a_row() const;
  // The tensor-wide scale, as the number weights are multiplied by.
  double factor() const;

 private:
  void read_values(int64_t n, int64_t k0, int64_t count, float* out) const;

  const PartWeights* part_;
  const WeightScheme* scheme_;
  bool quantized_;
  int64_t k_;
  int64_t groups_;  // scales along K
  int bits_;
  bool indexed_;  // groups by index tensor
};

// One row of weights, float64.
void decode_row(const StoredWeights& weights, int64_t n, float* scratch /* [K] */, double* out /* [K] */);

}  // namespace gearshift
