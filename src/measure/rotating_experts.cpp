#include "measure/rotating_experts.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "base/try.h"

namespace gearshift {

LayerSpec made_up_experts(const Scheme& scheme, int64_t experts, const std::vector<int64_t>& part_rows, int64_t k,
                          DType dtype) {
  LayerSpec spec = made_up_spec(scheme, part_rows, k, false, dtype);
  spec.kind = LayerKind::experts;
  spec.experts = experts;
  const std::vector<Module> modules = spec.modules;
  for (int64_t e = 1; e < experts; ++e) spec.modules.insert(spec.modules.end(), modules.begin(), modules.end());
  spec.weight_bytes *= static_cast<uint64_t>(experts);
  return spec;
}

Result<PreparedLayer> RotatingExperts::copy(const LayerPlan& plan, const MadeUpLayer& made, int threads) {
  PreparedLayer layer;
  layer.plan = &plan;
  LayerWeights weights = made.prepared.weights.front();
  weights.spec = &plan.layer;
  layer.weights.assign(static_cast<size_t>(plan.layer.experts), weights);
  for (const PlannedRange& range : plan.decision->ranges) {
    const Layout& layout = *range.kernel->layout;
    const bool there = std::any_of(layer.packed.begin(), layer.packed.end(),
                                   [&](const auto& packed) { return packed.first == &layout; });
    if (there || &layout == &checkpoint_layout) continue;
    const int64_t stride = layer.expert_stride(layout), experts = plan.layer.experts;
    AlignedBuffer buffer(static_cast<size_t>(stride * experts));
    if (buffer.size() == 0) {
      return ErrorInfo{ErrorCode::runtime,
                       std::to_string(experts) + " experts",
                       "not enough memory",
                       format_bytes(static_cast<uint64_t>(stride * experts)),
                       "--memory-limit BYTES lowers it",
                       {}};
    }
    layout.pack(layer.weights.front(), buffer.data(), threads);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t e = 1; e < experts; ++e)
      std::memcpy(buffer.data() + e * stride, buffer.data(), static_cast<size_t>(stride));
    bytes_ += buffer.size();
    layer.packed.emplace_back(&layout, std::move(buffer));
  }
  return layer;
}

Result<std::unique_ptr<RotatingExperts>> RotatingExperts::make(const LayerPlan& first, const LayerPlan& second,
                                                               const ExpertFunction& function, uint64_t seed,
                                                               int threads, uint64_t bytes) {
  std::unique_ptr<RotatingExperts> rotating(new RotatingExperts);
  const LayerPlan* const plans[] = {&first, &second};
  for (size_t i = 0; i < 2; ++i) rotating->made_[i] = make_up_layer(plans[i]->layer, seed + i);
  do {
    for (size_t i = 0; i < 2; ++i) {
      GEARSHIFT_TRY(PreparedLayer layer, rotating->copy(*plans[i], *rotating->made_[i], threads));
      rotating->layers_.push_back(std::make_unique<PreparedLayer>(std::move(layer)));
    }
    const size_t count = rotating->layers_.size();
    GEARSHIFT_TRY(ExpertBlock block,
                  ExpertBlock::make(*rotating->layers_[count - 2], *rotating->layers_[count - 1], function));
    rotating->blocks_.push_back(std::move(block));
  } while (rotating->bytes_ > 0 && rotating->bytes_ < bytes);
  return rotating;
}

}  // namespace gearshift
