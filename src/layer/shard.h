// What planning and cutting need to know about a shard besides its spec.
#pragma once

#include "gearshift/layer.h"

namespace gearshift {

// Rows or columns of a scale tile along the dimension that the shard divides; 0 where scales do not change along it or
// an index tensor says which columns share one.
int64_t scale_tile(const LayerSpec& shard);
// Extent of one rank along that dimension: of the first part whose scale tiles are cut, else of the first.
int64_t divided_extent(const LayerSpec& shard);
// The shard's scales beyond an even share of the whole layer's: tiles that two ranks hold, and the whole table of
// act-order.
uint64_t duplicated_scale_bytes(const LayerSpec& shard);
// Rows or columns of the first part (or half of one) that does not divide into equal shares; 0 where all do.
int64_t uneven_extent(const LayerSpec& shard);
// The zeros in the last rank of an uneven split.
uint64_t uneven_bytes(const LayerSpec& shard);

// By its name: rows are a vocabulary's.
bool is_output_head(const LayerSpec& layer);
// Matrices that are stored one behind the other as one module (gate and up) and divide each on their own: 2, else 1.
int64_t stored_halves(const LayerSpec& layer);
// Rows (or columns) of one rank of `extent`, of the first ones; interleaved rows stay in pairs.
int64_t rank_share(const LayerSpec& layer, int64_t extent, int64_t tp);
// Zeros before a rank's own data in `target`, where whole scale tiles make it begin inside one.
int64_t lead_of(const LayerSpec& target, int64_t each, int64_t rank);

// Zeros around a shard: sizes that a kernel needs.
struct Padding {
  int64_t n_min = 1, n_multiple = 1, k_min = 1, k_multiple = 1;
  bool whole_tiles = false;  // every rank's data begins and ends with a scale tile
};
// The shard as it is once filled up; it then begins with a tile. Rows are added behind each part for whole
// tiles, behind the last part for the rest.
LayerSpec padded(const LayerSpec& shard, const Padding& padding);

}  // namespace gearshift
