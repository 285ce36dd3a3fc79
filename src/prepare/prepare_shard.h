// What one rank holds of a planned layer, ready to run.
#pragma once

#include "gearshift/prepare.h"
#include "prepare/cut_weights.h"

namespace gearshift {

// Ranks hold different parts of this layer.
bool is_divided(const LayerSpec& layer);

// The whole layer's tensors, one entry per expert. The views live as long as the checkpoint, the spec as long as
// `shard`.
Result<std::vector<LayerWeights>> bind_whole(const Checkpoint& checkpoint, const LayerSpec& shard,
                                             std::vector<std::string>* notes = nullptr);

// Not movable: `layer` views the rest.
struct PreparedShard {
  LayerPlan plan;                                 // as kernels are given it: filled up, or with 16-bit weights
  std::vector<std::unique_ptr<CutWeights>> cuts;  // by expert; codes and scales as stored
  std::vector<std::unique_ptr<CutWeights>> made;  // by expert; bf16, where the plan's rescue dequantises
  PreparedLayer layer;

  PreparedShard() = default;
  PreparedShard(const PreparedShard&) = delete;
  PreparedShard& operator=(const PreparedShard&) = delete;
};
// `whole`: of bind_whole. REQUIRES: is_divided(plan.layer). Errors runtime: those of cut_weights and add_layout.
Result<std::unique_ptr<PreparedShard>> prepare_shard(const std::vector<LayerWeights>& whole, const LayerPlan& plan,
                                                     int64_t rank, int threads);

}  // namespace gearshift
