// A made-up layer in so many copies that reading them in turn reads memory, not caches.
#pragma once

#include <memory>

#include "measure/made_up_layer.h"

namespace gearshift {

// Copies lie at different addresses, which is what caches go by. Not movable: copies point into it.
class RotatingLayer {
 public:
  // `layouts`: those that will be read; each gets copies of at least `bytes` in all. Error runtime: not enough
  // memory.
  static Result<std::unique_ptr<RotatingLayer>> make(const LayerSpec& layer, const std::vector<const Layout*>& layouts,
                                                     uint64_t seed, int threads, uint64_t bytes);

  RotatingLayer(const RotatingLayer&) = delete;
  RotatingLayer& operator=(const RotatingLayer&) = delete;

  const LayerSpec& spec() const { return made_->plan.layer; }
  const LayerWeights& weights() const { return made_->prepared.weights.front(); }
  int64_t copies(const Layout& layout) const { return ring(layout).copies; }
  uint64_t bytes(const Layout& layout) const { return ring(layout).slab.size(); }

  // Points `args` at the next copy. REQUIRES: the kernel's layout is one of `layouts`.
  void next(const Kernel& kernel, RunArgs& args);

 private:
  struct Ring {
    const Layout* layout = nullptr;
    AlignedBuffer slab;
    int64_t stride = 0, copies = 0, turn = 0;
    std::vector<LayerWeights> weights;  // layout `checkpoint`: the views of each copy
  };

  RotatingLayer() = default;
  Result<void> add_ring(const Layout& layout, int threads, uint64_t bytes);
  void view_copies(Ring& ring, const std::vector<int64_t>& offsets) const;
  const Ring& ring(const Layout& layout) const;

  std::unique_ptr<MadeUpLayer> made_;
  std::vector<Ring> rings_;
};

}  // namespace gearshift
