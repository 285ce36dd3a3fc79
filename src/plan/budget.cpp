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

size_t moved_batch_sizes(const Decision& from, const Decision& to, const std::vector<int64_t>& batch) {
  return static_cast<size_t>(std::count_if(
      batch.begin(), batch.end(), [&](int64_t m) { return range_for(from, m).kernel != range_for(to, m).kernel; }));
}

}  // namespace gearshift
