#include <algorithm>
#include <unordered_map>
#include <utility>

#include "gearshift/plan.h"
#include "plan/batch_set.h"
#include "plan/groups.h"

namespace gearshift {
namespace {

// "every M a", "M 1..16 a, M 17 and up b"; neighbours with the same word are one.
template <class Word>
std::string by_range(const RecordedLayer& layer, const Word& word) {
  std::string out;
  for (size_t i = 0; i < layer.ranges.size();) {
    size_t last = i;
    while (last + 1 < layer.ranges.size() && word(layer.ranges[last + 1]) == word(layer.ranges[i])) ++last;
    const auto range = batch_range(layer.ranges[i].m_min, layer.ranges[last].m_max).value_or(BatchRange{});
    out += (out.empty() ? "" : ", ") + (range == BatchRange{} ? "" : text(range) + " ") + word(layer.ranges[i]);
    i = last + 1;
  }
  return out;
}

std::string kernels_of(const RecordedLayer& layer) {
  return by_range(layer, [](const RecordedRange& range) {
    return range.tactic.empty() ? range.kernel : range.kernel + "/" + range.tactic;
  });
}
std::string layouts_of(const RecordedLayer& layer) {
  return by_range(layer, [](const RecordedRange& range) { return range.layout; });
}
// What enters the product, by batch size where that changes.
std::string arithmetic_of(const RecordedLayer& layer) {
  const auto activation = [](const RecordedRange& range) { return range.activation; };
  const bool changes = std::any_of(layer.ranges.begin(), layer.ranges.end(), [&](const RecordedRange& range) {
    return range.activation != layer.ranges.front().activation;
  });
  return changes ? layer.arithmetic + "; " + by_range(layer, activation) : layer.arithmetic;
}
std::string shape_of(const RecordedLayer& layer) {
  std::string words = std::to_string(layer.n) + " x " + std::to_string(layer.k);
  if (layer.experts > 0) words += ", " + std::to_string(layer.experts) + (layer.experts == 1 ? " expert" : " experts");
  return words;
}

class Differences {
 public:
  void add(const RecordedLayer& layer, std::string_view field, std::string before, std::string after) {
    if (before == after) return;
    ++of_row_;
    const std::string key = role_of(layer.name) + '\n' + shape_of(layer) + '\n' + layer.scheme + '\n' +
                            std::string(field) + '\n' + before + '\n' + after;
    const auto [found, is_new] = index_.try_emplace(key, differences_.size());
    if (is_new)
      differences_.push_back(
          {{}, std::string(field), std::move(before), std::move(after), layer.n, layer.k, layer.scheme});
    differences_[found->second].layers.push_back(layer.name);
  }
  // How many the row had that was added last; starts the next one.
  size_t end_row() { return std::exchange(of_row_, 0); }
  std::vector<PlanDifference> take() { return std::move(differences_); }

 private:
  std::vector<PlanDifference> differences_;
  std::unordered_map<std::string, size_t> index_;
  size_t of_row_ = 0;
};

std::unordered_map<std::string_view, const RecordedLayer*> by_name(const PlanRecord& record) {
  std::unordered_map<std::string_view, const RecordedLayer*> index;
  for (const RecordedLayer& layer : record.layers) index.emplace(layer.name, &layer);
  return index;
}

}  // namespace

PlanComparison compare_plans(const PlanRecord& before, const PlanRecord& after) {
  const auto then = by_name(before), now = by_name(after);
  Differences differences;
  PlanComparison comparison;
  for (const RecordedLayer& old : before.layers) {
    const auto found = now.find(old.name);
    if (found == now.end()) {
      differences.add(old, "layer", kernels_of(old), "");
      differences.end_row();
      continue;
    }
    const RecordedLayer& other = *found->second;
    differences.add(old, "shape", shape_of(old), shape_of(other));
    differences.add(old, "scheme", old.scheme, other.scheme);
    differences.add(old, "kernel", kernels_of(old), kernels_of(other));
    differences.add(old, "layout", layouts_of(old), layouts_of(other));
    differences.add(old, "arithmetic", arithmetic_of(old), arithmetic_of(other));
    comparison.same += differences.end_row() == 0 ? 1 : 0;
  }
  for (const RecordedLayer& fresh : after.layers) {
    if (then.count(fresh.name) == 0) differences.add(fresh, "layer", "", kernels_of(fresh));
  }
  comparison.differences = differences.take();
  return comparison;
}

}  // namespace gearshift
