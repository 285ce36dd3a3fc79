// Made-up expert blocks in so many copies that running them in turn reads memory, not caches.
#pragma once

#include <memory>

#include "gearshift/moe.h"
#include "measure/made_up_layer.h"

namespace gearshift {

// The rows of `experts` experts whose parts have `part_rows` rows each.
LayerSpec made_up_experts(const Scheme& scheme, int64_t experts, const std::vector<int64_t>& part_rows, int64_t k,
                          DType dtype);

// All experts hold the same numbers at addresses of their own, which is what caches go by. Not movable: copies point
// into it.
class RotatingExperts {
 public:
  // Plans of two rows of made_up_experts; their packed layouts get copies of at least `bytes` in all. Errors: those of
  // ExpertBlock::make; runtime: not enough memory.
  static Result<std::unique_ptr<RotatingExperts>> make(const LayerPlan& first, const LayerPlan& second,
                                                       const ExpertFunction& function, uint64_t seed, int threads,
                                                       uint64_t bytes);
  RotatingExperts(const RotatingExperts&) = delete;
  RotatingExperts& operator=(const RotatingExperts&) = delete;

  const ExpertBlock& next() { return blocks_[turn_++ % blocks_.size()]; }
  const ExpertBlock& any() const { return blocks_.front(); }
  int64_t copies() const { return static_cast<int64_t>(blocks_.size()); }
  uint64_t bytes() const { return bytes_; }

 private:
  RotatingExperts() = default;
  Result<PreparedLayer> copy(const LayerPlan& plan, const MadeUpLayer& made, int threads);

  std::unique_ptr<MadeUpLayer> made_[2];
  std::vector<std::unique_ptr<PreparedLayer>> layers_;
  std::vector<ExpertBlock> blocks_;
  uint64_t bytes_ = 0;
  size_t turn_ = 0;
};

}  // namespace gearshift
