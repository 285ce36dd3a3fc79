// Where codes, scales and zero points stand in the stored tensors of a module, and how many bytes they take: one rule
// per storage, used to cut tensors, to make them up and to count bytes. Addresses are bits from the tensor's first
// byte, low bits first.
#pragma once

#include "gearshift/layer.h"

namespace gearshift {

// The extents that address rules depend on, of one module as stored.
struct StoredExtents {
  int64_t n = 0, k = 0;
  int64_t tile_rows = 0;  // scale tiles along N: 1 per tensor, n per row or group, fewer for blocks
  int64_t tile_cols = 0;  // scale tiles along K
};
// Of a whole module of n x k.
StoredExtents stored_extents(const Scheme& scheme, int64_t n, int64_t k);

// Bits of one code. Float weights: of their dtype.
int code_width(const Scheme& scheme, DType weight_dtype);
// Address of bit t of the code at (n, k).
int64_t code_bit(Storage storage, int width, const StoredExtents& extents, int64_t n, int64_t k, int t);
// Index of a scale (and of a zero point that is stored one an element) in its table.
int64_t tile_index(const WeightScheme& weight, const StoredExtents& extents, int64_t tile_row, int64_t tile_col);
// Zero points packed into words; false where they are stored one an element of their dtype.
bool zeros_are_packed(const WeightScheme& weight, DType dtype);
int64_t zero_bit(const WeightScheme& weight, int width, const StoredExtents& extents, int64_t n, int64_t tile_col,
                 int t);

// Sizes of the three tensors.
int64_t code_bytes(Storage storage, int width, const StoredExtents& extents);
int64_t tile_count(const StoredExtents& extents);
int64_t zero_point_bytes(const WeightScheme& weight, const StoredExtents& extents, DType dtype);

// Stored scales of a layer (of all its experts), or of the shard that it is; tensor-wide scalars are left out.
uint64_t scale_bytes(const LayerSpec& layer);

}  // namespace gearshift
