// Sets of batch sizes: what a contract allows, less what a quarantine takes away.
#pragma once

#include <limits>

#include "gearshift/base.h"

namespace gearshift {

inline constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();

// min..max, both included; 1 <= min <= max.
struct BatchRange {
  int64_t min = 1, max = kNoBound;
  bool operator==(const BatchRange&) const = default;
};
// "M 1..16", "M 5", "M 17 and up", "every M".
std::string text(BatchRange range);
// From the convention of pages, where a maximum of 0 means no bound. nullopt: no batch size lies in it.
std::optional<BatchRange> batch_range(int64_t min, int64_t max_or_zero);

// Disjoint ranges in ascending order, no two of them adjacent.
class BatchSet {
 public:
  BatchSet() = default;
  explicit BatchSet(BatchRange range) : ranges_{range} {}

  bool empty() const { return ranges_.empty(); }
  bool contains(BatchRange range) const;
  bool everything() const { return contains(BatchRange{}); }
  void intersect(BatchRange range);
  void subtract(BatchRange range);
  void add(BatchRange range);
  BatchSet complement() const;
  const std::vector<BatchRange>& ranges() const { return ranges_; }
  bool operator==(const BatchSet&) const = default;

 private:
  std::vector<BatchRange> ranges_;
};
std::string text(const BatchSet& set);  // "M 1..16 and M 33 and up"; "no M" when empty

}  // namespace gearshift
