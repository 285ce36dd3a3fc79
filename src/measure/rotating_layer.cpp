#include "measure/rotating_layer.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstring>

#include "base/math.h"
#include "base/text.h"
#include "base/try.h"

namespace gearshift {

namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kMostCopies = 1 << 16;  // of tiny layers: what points at them would outgrow them

int64_t whole_lines(int64_t bytes) { return std::max<int64_t>(1, (bytes + kLineBytes - 1) / kLineBytes) * kLineBytes; }

// Each thread writes the share of every copy that it will about read: pages lie near their first user.
void repeat(const uint8_t* from, int64_t bytes, uint8_t* to, int64_t stride, int64_t copies, int threads) {
#pragma omp parallel num_threads(threads)
  {
    const int64_t all = omp_get_num_threads(), thread = omp_get_thread_num();
    const int64_t begin = bytes * thread / all, end = bytes * (thread + 1) / all;
    for (int64_t copy = 0; copy < copies; ++copy)
      std::memcpy(to + copy * stride + begin, from + begin, static_cast<size_t>(end - begin));
  }
}

}  // namespace

Result<std::unique_ptr<RotatingLayer>> RotatingLayer::make(const LayerSpec& layer,
                                                           const std::vector<const Layout*>& layouts, uint64_t seed,
                                                           int threads, uint64_t bytes) {
  std::unique_ptr<RotatingLayer> rotating(new RotatingLayer);
  rotating->made_ = make_up_layer(layer, seed);
  for (const Layout* layout : layouts) GEARSHIFT_CHECK(rotating->add_ring(*layout, threads, bytes));
  return rotating;
}

Result<void> RotatingLayer::add_ring(const Layout& layout, int threads, uint64_t bytes) {
  if (std::any_of(rings_.begin(), rings_.end(), [&](const Ring& known) { return known.layout == &layout; })) return {};
  const bool as_stored = &layout == &checkpoint_layout;
  std::vector<int64_t> offsets;
  Ring ring;
  ring.layout = &layout;
  if (as_stored) {
    for (const auto& stored : made_->stored) {
      offsets.push_back(ring.stride);
      ring.stride += whole_lines(static_cast<int64_t>(stored.size()));
    }
  } else {
    ring.stride = whole_lines(layout.bytes(spec()));
  }
  ring.copies = std::clamp(ceil_div(static_cast<int64_t>(bytes), ring.stride), int64_t{1}, kMostCopies);
  ring.slab = AlignedBuffer(static_cast<size_t>(ring.stride * ring.copies));
  if (ring.slab.size() == 0) {
    return ErrorInfo{ErrorCode::runtime,
                     fmt::format("{} copies of a layer of {} x {}", ring.copies, spec().n, spec().k),
                     "not enough memory",
                     format_bytes(static_cast<uint64_t>(ring.stride * ring.copies)),
                     "--memory-limit BYTES lowers it",
                     {}};
  }
  uint8_t* slab = ring.slab.data();
  if (as_stored) {
    for (size_t i = 0; i < offsets.size(); ++i) {
      const auto& stored = made_->stored[i];
      repeat(stored.data(), static_cast<int64_t>(stored.size()), slab + offsets[i], ring.stride, ring.copies, threads);
    }
    view_copies(ring, offsets);
  } else {
    layout.pack(weights(), slab, threads);
    repeat(slab, ring.stride, slab + ring.stride, ring.stride, ring.copies - 1, threads);
  }
  rings_.push_back(std::move(ring));
  return {};
}

void RotatingLayer::view_copies(Ring& ring, const std::vector<int64_t>& offsets) const {
  for (int64_t copy = 0; copy < ring.copies; ++copy) {
    LayerWeights moved = weights();
    const auto move = [&](ByteView& view) {
      for (size_t i = 0; i < offsets.size() && !view.empty(); ++i) {
        if (view.data() != made_->stored[i].data()) continue;
        view = {ring.slab.data() + copy * ring.stride + offsets[i], view.size()};
        return;
      }
    };
    for (PartWeights& part : moved.parts) {
      for (ByteView* view :
           {&part.weight, &part.scale, &part.zero_point, &part.group_index, &part.pre_scale, &part.bias})
        move(*view);
    }
    ring.weights.push_back(std::move(moved));
  }
}

const RotatingLayer::Ring& RotatingLayer::ring(const Layout& layout) const {
  return *std::find_if(rings_.begin(), rings_.end(), [&](const Ring& known) { return known.layout == &layout; });
}

void RotatingLayer::next(const Kernel& kernel, RunArgs& args) {
  Ring& ring = *std::find_if(rings_.begin(), rings_.end(), [&](const Ring& r) { return r.layout == kernel.layout; });
  const int64_t copy = ring.turn;
  ring.turn = (copy + 1) % ring.copies;
  const bool as_stored = ring.layout == &checkpoint_layout;
  args.weights = as_stored ? &ring.weights[static_cast<size_t>(copy)] : &weights();
  args.packed = as_stored ? nullptr : ring.slab.data() + copy * ring.stride;
}

}  // namespace gearshift
