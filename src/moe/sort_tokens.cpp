#include <algorithm>

#include "gearshift/moe.h"

namespace gearshift {

void sort_tokens(const RoutedTokens& routed, SortedTokens& sorted) {
  const int64_t entries = routed.tokens * routed.top_k;
  std::fill(sorted.first.begin(), sorted.first.end(), 0);
  // Counts one place further on; their sums then are where each expert begins.
  for (int64_t i = 0; i < entries; ++i) ++sorted.first[static_cast<size_t>(routed.experts[i]) + 1];
  for (size_t e = 1; e < sorted.first.size(); ++e) sorted.first[e] += sorted.first[e - 1];
  for (int64_t i = 0; i < entries; ++i) {
    int32_t& next = sorted.first[static_cast<size_t>(routed.experts[i])];
    sorted.place[static_cast<size_t>(i)] = next;
    sorted.entry[static_cast<size_t>(next++)] = static_cast<int32_t>(i);
  }
  // Every beginning has moved to the one after it.
  std::copy_backward(sorted.first.begin(), sorted.first.end() - 1, sorted.first.end());
  sorted.first[0] = 0;
}

}  // namespace gearshift
