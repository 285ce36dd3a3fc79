#include "plan/measured.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gearshift {

namespace {

constexpr double least_noise = 0.02;

// Of a median of normal samples: 1.253 sigma / sqrt(n), with sigma from the 10th and 90th percentile, 2.563 sigma
// apart.
double standard_error(const MeasuredTime& time) {
  return 1.253 / 2.563 * (time.p90_us - time.p10_us) / std::sqrt(static_cast<double>(std::max(1, time.samples)));
}

int tier_of(const Choice& choice, size_t candidate) {
  return choice.heard && !asked_for(choice.candidates[candidate], choice.request) ? 1 : 0;
}

bool reads_chosen_layout(const Choice& choice, size_t candidate) {
  const Layout* layout = kernel_of(choice.candidates[candidate]).layout;
  if (layout == &checkpoint_layout || layout == choice.layout.packed) return true;
  const auto& assignments = choice.layout.assignments;
  return choice.layout.several && std::any_of(assignments.begin(), assignments.end(), [&](const Assignment& own) {
           return kernel_of(choice.candidates[own.candidate]).layout == layout;
         });
}

bool may_challenge(const Choice& choice, size_t challenger, size_t incumbent, BatchRange range) {
  const GatedCandidate& candidate = choice.candidates[challenger];
  return challenger != incumbent && !candidate.refusal && candidate.allowed.contains(range) &&
         reads_chosen_layout(choice, challenger) && tier_of(choice, challenger) == tier_of(choice, incumbent);
}

// Batch sizes at which a candidate was measured, ascending.
std::vector<int64_t> points_of(const Choice& choice, size_t candidate) {
  std::vector<int64_t> points;
  for (const auto& [m, time] : choice.times[candidate]) points.push_back(m);
  return points;
}

const MeasuredTime* time_at(const Choice& choice, size_t candidate, int64_t m) {
  const auto found = choice.times[candidate].find(m);
  return found == choice.times[candidate].end() ? nullptr : found->second;
}

// Among the challengers that beat the incumbent the fastest; one that the fastest does not beat, and that stands before
// it in the list, is a tie and wins.
Assignment decide(const Choice& choice, const Assignment& piece, int64_t point) {
  Assignment decided = piece;
  const MeasuredTime* incumbent = time_at(choice, piece.candidate, point);
  if (incumbent == nullptr) return decided;
  std::vector<std::pair<size_t, const MeasuredTime*>> faster;
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    if (!may_challenge(choice, i, piece.candidate, piece.range)) continue;
    const MeasuredTime* time = time_at(choice, i, point);
    if (time == nullptr) continue;
    decided.measured_at = point;
    if (beats(*time, *incumbent)) faster.emplace_back(i, time);
  }
  if (faster.empty()) return decided;
  const auto best = std::min_element(faster.begin(), faster.end(), [](const auto& a, const auto& b) {
    return a.second->median_us < b.second->median_us;
  });
  const auto first = std::find_if(faster.begin(), faster.end(),
                                  [&](const auto& other) { return !beats(*best->second, *other.second); });
  decided.candidate = first->first;
  return decided;
}

// One kernel for all batch sizes: the sum over the batch sizes of the policy decides.
std::vector<Assignment> decide_for_all(const Choice& choice, const Assignment& only) {
  const auto sum_of = [&](size_t candidate) -> std::optional<MeasuredTime> {
    const std::vector<int64_t> points = points_of(choice, candidate);
    MeasuredTime sum;
    sum.samples = std::numeric_limits<int>::max();
    for (const int64_t m : choice.context.policy.batch) {
      const MeasuredTime* time = time_at(choice, candidate, bucket_of(m, points));
      if (time == nullptr) return std::nullopt;
      sum.median_us += time->median_us;
      sum.p10_us += time->p10_us;
      sum.p90_us += time->p90_us;
      sum.samples = std::min(sum.samples, time->samples);
    }
    return sum;
  };
  Assignment decided = only;
  std::optional<MeasuredTime> best = sum_of(only.candidate);
  if (!best || choice.context.policy.batch.empty()) return {only};
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    if (!may_challenge(choice, i, only.candidate, only.range)) continue;
    const std::optional<MeasuredTime> sum = sum_of(i);
    if (!sum) continue;
    decided.measured_at = bucket_of(choice.context.policy.batch.front(), points_of(choice, i));
    if (!beats(*sum, *best)) continue;
    decided.candidate = i;
    best = sum;
  }
  return {decided};
}

}  // namespace

int64_t bucket_of(int64_t m, const std::vector<int64_t>& points) {
  const auto above = std::upper_bound(points.begin(), points.end(), m);
  return above == points.begin() ? 0 : *std::prev(above);
}

bool beats(const MeasuredTime& challenger, const MeasuredTime& incumbent) {
  if (challenger.samples < kFewestSamples || incumbent.samples < kFewestSamples) return false;
  const double noise = std::max(least_noise * incumbent.median_us,
                                3 * std::hypot(standard_error(challenger), standard_error(incumbent)));
  return challenger.median_us + noise < incumbent.median_us;
}

std::vector<MeasuredPoints> measured_points(const Choice& choice) {
  const Policy& policy = choice.context.policy;
  std::vector<MeasuredPoints> points(choice.candidates.size());
  // Under --batch-invariant tuning must not change a bit, so it has no say.
  if (policy.selection != "measured" || policy.batch_invariant) return points;
  for (const MeasuredTime& time : choice.context.store.times) {
    if (time.layer_class != choice.layer_class || time.dtype != name(policy.dtype) || time.mode != policy.mode ||
        time.threads != policy.threads || time.samples < kFewestSamples)
      continue;
    for (size_t i = 0; i < choice.candidates.size(); ++i) {
      const Kernel& kernel = kernel_of(choice.candidates[i]);
      if (time.kernel == kernel.name && time.kernel_version == kernel.version && time.layout == key_of(*kernel.layout))
        points[i][time.m] = &time;
    }
  }
  return points;
}

std::vector<Assignment> with_measurements(const Choice& choice) {
  const std::vector<Assignment>& listed = choice.layout.assignments;
  if (choice.times.empty()) return listed;
  if (choice.context.policy.single_kernel) return listed.size() == 1 ? decide_for_all(choice, listed.front()) : listed;
  std::vector<Assignment> decided;
  for (const Assignment& assignment : listed) {
    const std::vector<int64_t> points = points_of(choice, assignment.candidate);
    for (int64_t begin = assignment.range.min;;) {
      const auto next = std::upper_bound(points.begin(), points.end(), begin);
      const bool last = next == points.end() || *next > assignment.range.max;
      const BatchRange piece{begin, last ? assignment.range.max : *next - 1};
      const int64_t point = bucket_of(begin, points);
      decided.push_back(point == 0 ? Assignment{piece, assignment.candidate}
                                   : decide(choice, {piece, assignment.candidate}, point));
      if (last) break;
      begin = *next;
    }
  }
  return decided;
}

}  // namespace gearshift
