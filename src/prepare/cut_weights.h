// The tensors of one tensor-parallel rank, cut out of a whole layer's.
#pragma once

#include <memory>

#include "gearshift/kernel.h"

namespace gearshift {

// Not movable: `weights` views `spec` and `bytes`.
struct CutWeights {
  LayerSpec spec;
  LayerWeights weights;
  std::vector<std::vector<uint8_t>> bytes;

  CutWeights() = default;
  CutWeights(const CutWeights&) = delete;
  CutWeights& operator=(const CutWeights&) = delete;
};

// `target`: what shard() or padded() made of the layer; what it has beyond the rank's own rows and columns is zero,
// codes and scales. Codes, scales and zero points keep their bits. A row split leaves the bias to rank 0. Error
// runtime: halves of one stored matrix whose scale blocks are cut.
Result<std::unique_ptr<CutWeights>> cut_weights(const LayerWeights& whole, const LayerSpec& target, int64_t rank);

// What each of the rank's columns of x, or rows of the weights of part `part`, is in the whole layer's; kPadding:
// zeros.
inline constexpr int64_t kPadding = -1;
std::vector<int64_t> rank_columns(const LayerSpec& target, int64_t rank);
std::vector<int64_t> rank_rows(const LayerSpec& target, size_t part, int64_t rank);

}  // namespace gearshift
