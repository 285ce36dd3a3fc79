// Are the shards of all ranks together the layer?
#pragma once

#include "prepare/cut_weights.h"

namespace gearshift {

// Multiplies the same made-up activations, not quantized, by the whole layer and by the shards, in float64.
class ShardSum {
 public:
  // `whole` must outlive this.
  ShardSum(const LayerWeights& whole, uint64_t seed, int threads);
  // Adds what rank `rank` contributes; each rank once.
  void add(const CutWeights& shard, int64_t rank);
  // "" where nothing but rounding differs, else where it does: "row 0, column 7: 0.12 instead of 0.10".
  std::string difference() const;

 private:
  struct Product {
    std::vector<double> y, magnitude;
  };
  Product multiply(const LayerWeights& weights, const std::vector<float>& x) const;

  const LayerWeights& whole_;
  int threads_;
  std::vector<float> x_;  // [rows, K]
  Product wanted_;
  std::vector<double> sum_;
};

}  // namespace gearshift
