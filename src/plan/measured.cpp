#include "plan/measured.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gearshift {

namespace {

constexpr double least_noise = 0.02;

// Where a row does not say it: of a median of normal samples, 1.253 sigma / sqrt(n), with sigma from the 10th and 90th
// percentile, 2.563 sigma apart.
double standard_error(const MeasuredTime& time) {
  if (time.error_us > 0) return time.error_us;
  return 1.253 / 2.563 * (time.p90_us - time.p10_us) / std::sqrt(static_cast<double>(std::max(1, time.samples)));
}

int tier_of(const Choice& choice, size_t candidate) {
  return choice.heard && !asked_for(choice.candidates[candidate], choice.request) ? 1 : 0;
}

bool reads_chosen_layout(const Choice& choice, size_t candidate) {
  const Layout* layout = kernel_of(choice.candidates[candidate]).layout;
  if (layout == &checkpoint_layout || layout == choice.layout.packed) return true;
  return choice.layout.several;  // what they cost is held against the budget afterwards
}

bool may_challenge(const Choice& choice, size_t challenger, size_t incumbent, BatchRange range) {
  const GatedCandidate& candidate = choice.candidates[challenger];
  return challenger != incumbent && !candidate.refusal && candidate.allowed.contains(range) &&
         reads_chosen_layout(choice, challenger) && tier_of(choice, challenger) == tier_of(choice, incumbent);
}

// A tactic that was wrong at this batch size; whole kernels are left out by their gates.
bool is_quarantined(const Choice& choice, const MeasuredTime& time) {
  const auto& rows = choice.context.store.quarantines;
  return !time.tactic.empty() && std::any_of(rows.begin(), rows.end(), [&](const Quarantine& row) {
    return row.tactic == time.tactic && row.kernel == time.kernel && row.kernel_version == time.kernel_version &&
           row.layer_class == time.layer_class && row.dtype == time.dtype && row.m_min <= time.m &&
           (row.m_max == 0 || time.m <= row.m_max);
  });
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

// Among those that beat the first one the fastest; one that the fastest does not beat, and that stands before it, is a
// tie and wins. The first one where nobody beats it. REQUIRES: not empty.
size_t winner_of(const std::vector<const MeasuredTime*>& times) {
  std::vector<size_t> faster;
  for (size_t i = 1; i < times.size(); ++i) {
    if (beats(*times[i], *times[0])) faster.push_back(i);
  }
  if (faster.empty()) return 0;
  const size_t best = *std::min_element(faster.begin(), faster.end(),
                                        [&](size_t a, size_t b) { return times[a]->median_us < times[b]->median_us; });
  return *std::find_if(faster.begin(), faster.end(), [&](size_t i) { return !beats(*times[best], *times[i]); });
}

// The name as the kernel has it, which outlives the store; nullopt: it has no such tactic.
std::optional<std::string_view> tactic_of(const Kernel& kernel, std::string_view name) {
  if (name.empty()) return std::string_view();
  const auto found = std::find(kernel.tactics.begin(), kernel.tactics.end(), name);
  return found == kernel.tactics.end() ? std::nullopt : std::optional(*found);
}

Assignment decide(const Choice& choice, const Assignment& piece, int64_t point) {
  Assignment decided = piece;
  const MeasuredTime* incumbent = time_at(choice, piece.candidate, point);
  if (incumbent == nullptr) return decided;
  std::vector<size_t> candidates = {piece.candidate};
  std::vector<const MeasuredTime*> times = {incumbent};
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    const MeasuredTime* time =
        may_challenge(choice, i, piece.candidate, piece.range) ? time_at(choice, i, point) : nullptr;
    if (time == nullptr) continue;
    candidates.push_back(i);
    times.push_back(time);
  }
  const size_t winner = winner_of(times);
  decided.candidate = candidates[winner];
  decided.tactic = *tactic_of(kernel_of(choice.candidates[decided.candidate]), times[winner]->tactic);
  if (times.size() > 1 || !decided.tactic.empty()) decided.measured_at = point;
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
      sum.error_us += time->error_us;
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
  std::vector<std::map<int64_t, std::vector<const MeasuredTime*>>> times(choice.candidates.size());
  for (const MeasuredTime& time : choice.context.store.times) {
    if (time.layer_class != choice.layer_class || time.dtype != name(policy.dtype) || time.mode != policy.mode ||
        time.threads != policy.threads || time.samples < kFewestSamples)
      continue;
    for (size_t i = 0; i < choice.candidates.size(); ++i) {
      const Kernel& kernel = kernel_of(choice.candidates[i]);
      if (time.kernel == kernel.name && time.kernel_version == kernel.version &&
          time.layout == key_of(*kernel.layout) && tactic_of(kernel, time.tactic) && !is_quarantined(choice, time))
        times[i][time.m].push_back(&time);
    }
  }
  for (size_t i = 0; i < times.size(); ++i) {
    const auto& tactics = kernel_of(choice.candidates[i]).tactics;
    const auto position = [&](const MeasuredTime* time) {
      return time->tactic.empty() ? -1 : std::find(tactics.begin(), tactics.end(), time->tactic) - tactics.begin();
    };
    for (auto& [m, rows] : times[i]) {
      std::sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) { return position(a) < position(b); });
      points[i][m] = rows[winner_of(rows)];
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
