#include "plan/ranges.h"

#include <algorithm>
#include <iterator>

namespace gearshift {
namespace {

// Batch sizes at which some contender begins or ceases to be allowed or preferred; between two of them nothing changes.
std::vector<int64_t> starts_of_intervals(const std::vector<Contender>& contenders) {
  std::vector<int64_t> starts{1};
  const auto add = [&](BatchRange range) {
    starts.push_back(range.min);
    if (range.max != kNoBound) starts.push_back(range.max + 1);
  };
  for (const Contender& contender : contenders) {
    add(contender.preferred);
    for (BatchRange range : contender.allowed.ranges()) add(range);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

bool prefers(const Contender& contender, BatchRange interval) {
  return contender.preferred.min <= interval.min && interval.max <= contender.preferred.max;
}

const Contender* winner(const std::vector<Contender>& contenders, BatchRange interval) {
  const Contender* best = nullptr;
  const auto rank = [&](const Contender& c) { return 2 * c.tier + (prefers(c, interval) ? 0 : 1); };
  for (const Contender& contender : contenders)
    if (contender.allowed.contains(interval) && (best == nullptr || rank(contender) < rank(*best))) best = &contender;
  return best;
}

std::vector<Contender> with_layout(const std::vector<Contender>& contenders, const Layout* packed) {
  std::vector<Contender> kept;
  std::copy_if(contenders.begin(), contenders.end(), std::back_inserter(kept), [&](const Contender& contender) {
    return contender.layout == &checkpoint_layout || contender.layout == packed;
  });
  return kept;
}

// Packed layouts in the order in which their first contenders stand.
std::vector<const Layout*> packed_layouts(std::vector<Contender> contenders) {
  std::stable_sort(contenders.begin(), contenders.end(),
                   [](const Contender& a, const Contender& b) { return a.tier < b.tier; });
  std::vector<const Layout*> layouts;
  for (const Contender& contender : contenders) {
    const bool known = std::find(layouts.begin(), layouts.end(), contender.layout) != layouts.end();
    if (contender.layout != &checkpoint_layout && !known) layouts.push_back(contender.layout);
  }
  return layouts;
}

const Contender& contender_of(const std::vector<Contender>& contenders, const Assignment& assignment) {
  return *std::find_if(contenders.begin(), contenders.end(),
                       [&](const Contender& contender) { return contender.candidate == assignment.candidate; });
}

BatchSet batches_of_tier_0(const std::vector<Contender>& contenders, const std::vector<Assignment>& assignments) {
  BatchSet set;
  for (const Assignment& assignment : assignments)
    if (contender_of(contenders, assignment).tier == 0) set.add(assignment.range);
  return set;
}

}  // namespace

BatchSet batches(const std::vector<Assignment>& assignments) {
  BatchSet set;
  for (const Assignment& assignment : assignments) set.add(assignment.range);
  return set;
}

LayoutChoice choose_layout(const std::vector<Contender>& contenders) {
  const std::vector<Assignment> unrestricted = assign(contenders);
  const BatchSet served = batches(unrestricted), served_by_tier_0 = batches_of_tier_0(contenders, unrestricted);

  LayoutChoice best{nullptr, false, assign(with_layout(contenders, nullptr))};
  int best_loss = 4;  // worse than any layout that is used
  for (const Layout* layout : packed_layouts(contenders)) {
    std::vector<Assignment> assignments = assign(with_layout(contenders, layout));
    const bool used = std::any_of(assignments.begin(), assignments.end(), [&](const Assignment& assignment) {
      return contender_of(contenders, assignment).layout == layout;
    });
    if (!used) continue;
    const int loss = (batches(assignments) == served ? 0 : 2) +
                     (batches_of_tier_0(contenders, assignments) == served_by_tier_0 ? 0 : 1);
    if (loss >= best_loss) continue;
    best = {layout, false, std::move(assignments)};
    best_loss = loss;
  }
  return best;
}

LayoutChoice any_layouts(const std::vector<Contender>& contenders) {
  LayoutChoice choice{nullptr, true, assign(contenders)};
  for (const Assignment& assignment : choice.assignments) {
    const Layout* layout = contender_of(contenders, assignment).layout;
    if (choice.packed == nullptr && layout != &checkpoint_layout) choice.packed = layout;
  }
  return choice;
}

std::vector<Assignment> assign(const std::vector<Contender>& contenders) {
  const std::vector<int64_t> starts = starts_of_intervals(contenders);
  std::vector<Assignment> assignments;
  for (size_t i = 0; i < starts.size(); ++i) {
    const BatchRange interval{starts[i], i + 1 < starts.size() ? starts[i + 1] - 1 : kNoBound};
    const Contender* best = winner(contenders, interval);
    if (best == nullptr) continue;
    const bool continues = !assignments.empty() && assignments.back().candidate == best->candidate &&
                           assignments.back().range.max == interval.min - 1;
    if (continues)
      assignments.back().range.max = interval.max;
    else
      assignments.push_back({interval, best->candidate});
  }
  return assignments;
}

}  // namespace gearshift
