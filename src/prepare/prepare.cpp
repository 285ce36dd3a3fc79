#include "gearshift/prepare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/try.h"

namespace gearshift {

namespace {

constexpr int64_t alignment_bytes = 64;  // what Layout::pack may assume of its output

int64_t experts_of(const LayerSpec& layer) { return std::max<int64_t>(1, layer.experts); }

// Straight from the mapped bytes: nothing is held besides the packed ones. Threads take an expert each where there are
// enough of them, else they share each expert.
void pack_experts(const PreparedLayer& layer, const Layout& layout, int64_t stride, int threads, uint8_t* out) {
  const auto experts = static_cast<int64_t>(layer.weights.size());
  const auto pack = [&](int64_t expert, int within) {
    layout.pack(layer.weights[static_cast<size_t>(expert)], out + stride * expert, within);
  };
  if (experts < 2 * threads) {
    for (int64_t expert = 0; expert < experts; ++expert) pack(expert, threads);
    return;
  }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int64_t expert = 0; expert < experts; ++expert) pack(expert, 1);
}

}  // namespace

int64_t PreparedLayer::expert_stride(const Layout& layout) const {
  const int64_t bytes = layout.bytes(plan->layer);
  return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

const uint8_t* PreparedLayer::packed_for(const Kernel& kernel, int64_t expert) const {
  for (const auto& [layout, buffer] : packed) {
    if (layout == kernel.layout) return buffer.data() + expert_stride(*layout) * expert;
  }
  for (const auto& [layout, buffer] : on_device) {
    if (layout == kernel.layout) return buffer.data() + expert_stride(*layout) * expert;
  }
  return nullptr;
}

Result<void> add_layout(PreparedLayer& layer, const Layout& layout, int threads) {
  if (&layout == &checkpoint_layout) return {};
  for (const auto& [present, buffer] : layer.packed) {
    if (present == &layout) return {};
  }
  for (const auto& [present, buffer] : layer.on_device) {
    if (present == &layout) return {};
  }
  const int64_t stride = layer.expert_stride(layout);
  const int64_t bytes = stride * experts_of(layer.plan->layer);
  AlignedBuffer buffer(static_cast<size_t>(bytes));
  if (bytes > 0 && buffer.size() == 0) {
    ErrorInfo error;
    error.code = ErrorCode::runtime;
    error.subject = fmt::format("layer {}", layer.plan->layer.name);
    error.found = "not enough memory";
    error.wanted = fmt::format("{} for layout {}", format_bytes(static_cast<uint64_t>(bytes)), layout.name);
    return error;
  }
  pack_experts(layer, layout, stride, threads, buffer.data());
  if (layout.platform == Platform::cpu) {
    layer.packed.emplace_back(&layout, std::move(buffer));
    return {};
  }
  GEARSHIFT_TRY(DeviceBuffer there, DeviceBuffer::allocate(buffer.size()));
  GEARSHIFT_CHECK(there.write(buffer.data(), buffer.size()));
  layer.on_device.emplace_back(&layout, std::move(there));
  return {};
}

Result<PreparedLayer> prepare(const Checkpoint& checkpoint, const LayerPlan& plan, int threads) {
  PreparedLayer prepared;
  prepared.plan = &plan;
  for (int64_t expert = 0; expert < experts_of(plan.layer); ++expert) {
    GEARSHIFT_TRY(LayerWeights weights, bind_weights(checkpoint, plan.layer, expert, &prepared.notes));
    prepared.weights.push_back(std::move(weights));
  }
  std::sort(prepared.notes.begin(), prepared.notes.end());
  prepared.notes.erase(std::unique(prepared.notes.begin(), prepared.notes.end()), prepared.notes.end());
  for (const PlannedRange& range : plan.decision->ranges) {
    GEARSHIFT_CHECK(add_layout(prepared, *range.kernel->layout, threads));
  }
  return prepared;
}

int64_t workspace_bytes(const LayerPlan& plan, int64_t m, int threads) {
  int64_t most = 0;
  for (const PlannedRange& range : plan.decision->ranges) {
    if (range.m_min > m || range.kernel->workspace_bytes == nullptr) continue;
    const int64_t largest = range.m_max == 0 ? m : std::min(m, range.m_max);
    most = std::max(most, range.kernel->workspace_bytes(plan.layer, largest, threads));
  }
  return most;
}

}  // namespace gearshift
