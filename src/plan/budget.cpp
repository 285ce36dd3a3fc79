#include "plan/budget.h"

#include <algorithm>

namespace gearshift {

std::vector<size_t> rows_paid_for(std::vector<LayoutOffer> offers, uint64_t budget) {
  std::stable_sort(offers.begin(), offers.end(), [](const LayoutOffer& a, const LayoutOffer& b) {
    // a.batch_sizes / a.extra_bytes > b.batch_sizes / b.extra_bytes; in double: products may not fit.
    return static_cast<double>(a.batch_sizes) * static_cast<double>(b.extra_bytes) >
           static_cast<double>(b.batch_sizes) * static_cast<double>(a.extra_bytes);
  });
  std::vector<size_t> rows;
  for (const LayoutOffer& offer : offers) {
    if (offer.extra_bytes > budget) continue;
    budget -= offer.extra_bytes;
    rows.push_back(offer.row);
  }
  return rows;
}

uint64_t second_copy_bytes(const LayerSpec& shard, const Decision& decision) {
  const LayerSpec& layer = decision.rescue && decision.rescue->served ? *decision.rescue->served : shard;
  for (const PlannedRange& range : decision.ranges) {
    const Layout* layout = range.kernel->layout;
    if (layout == &checkpoint_layout) continue;
    const auto first = static_cast<uint64_t>(std::max<int64_t>(layout->bytes(layer), 0)) *
                       static_cast<uint64_t>(std::max<int64_t>(layer.experts, 1));
    return decision.second_layout_bytes - std::min(first, decision.second_layout_bytes);
  }
  return 0;
}

size_t moved_batch_sizes(const Decision& from, const Decision& to, const std::vector<int64_t>& batch) {
  return static_cast<size_t>(std::count_if(
      batch.begin(), batch.end(), [&](int64_t m) { return range_for(from, m).kernel != range_for(to, m).kernel; }));
}

}  // namespace gearshift
