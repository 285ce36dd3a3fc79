#include "plan/batch_set.h"

#include <algorithm>

#include "base/text.h"

namespace gearshift {

std::string text(BatchRange range) {
  if (range == BatchRange{}) return "every M";
  if (range.max == kNoBound) return "M " + std::to_string(range.min) + " and up";
  if (range.min == range.max) return "M " + std::to_string(range.min);
  return "M " + std::to_string(range.min) + ".." + std::to_string(range.max);
}

std::optional<BatchRange> batch_range(int64_t min, int64_t max_or_zero) {
  const BatchRange range{std::max<int64_t>(min, 1), max_or_zero == 0 ? kNoBound : max_or_zero};
  if (range.max < range.min) return std::nullopt;
  return range;
}

bool BatchSet::contains(BatchRange range) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](BatchRange own) { return own.min <= range.min && range.max <= own.max; });
}

void BatchSet::intersect(BatchRange range) {
  std::vector<BatchRange> kept;
  for (BatchRange own : ranges_) {
    const BatchRange common{std::max(own.min, range.min), std::min(own.max, range.max)};
    if (common.min <= common.max) kept.push_back(common);
  }
  ranges_ = std::move(kept);
}

void BatchSet::subtract(BatchRange range) {
  std::vector<BatchRange> kept;
  for (BatchRange own : ranges_) {
    if (own.max < range.min || own.min > range.max) {
      kept.push_back(own);
      continue;
    }
    if (own.min < range.min) kept.push_back({own.min, range.min - 1});
    if (own.max > range.max) kept.push_back({range.max + 1, own.max});
  }
  ranges_ = std::move(kept);
}

void BatchSet::add(BatchRange range) {
  ranges_.push_back(range);
  std::sort(ranges_.begin(), ranges_.end(), [](BatchRange a, BatchRange b) { return a.min < b.min; });
  std::vector<BatchRange> merged;
  for (BatchRange own : ranges_) {
    const bool joins = !merged.empty() && (merged.back().max == kNoBound || own.min <= merged.back().max + 1);
    if (joins)
      merged.back().max = std::max(merged.back().max, own.max);
    else
      merged.push_back(own);
  }
  ranges_ = std::move(merged);
}

BatchSet BatchSet::complement() const {
  BatchSet rest{BatchRange{}};
  for (BatchRange own : ranges_) rest.subtract(own);
  return rest;
}

std::string text(const BatchSet& set) {
  if (set.empty()) return "no M";
  std::vector<std::string> words;
  for (BatchRange range : set.ranges()) words.push_back(text(range));
  return join(words, " and ");
}

}  // namespace gearshift
