#include <algorithm>

#include "gearshift/measure.h"

namespace gearshift {

namespace {

// An upper edge beyond every batch that will run is proven only up to here: the proof would cost more than the work.
constexpr int64_t largest_edge = 4096;

}  // namespace

std::vector<int64_t> probe_sizes(int64_t m_min, int64_t m_max, const std::vector<int64_t>& batch) {
  std::vector<int64_t> sizes;
  const auto add = [&](int64_t m) {
    if (m >= m_min && (m_max == 0 || m <= m_max)) sizes.push_back(m);
  };
  add(m_min);
  for (const int64_t m : batch) add(m);
  add((m_min + 7) / 8 * 8 + 5);
  add(33);
  const int64_t largest = sizes.empty() ? m_min : *std::max_element(sizes.begin(), sizes.end());
  if (m_max != 0 && m_max <= std::max(largest, largest_edge)) add(m_max);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace gearshift
