// Verdicts and their reasons. Nothing is decided here.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "plan/choice.h"
#include "plan/select.h"

namespace gearshift {
namespace {

BatchSet batches_of(const Choice& choice, size_t candidate) {
  BatchSet set;
  for (const Assignment& assignment : choice.layout.assignments)
    if (assignment.candidate == candidate) set.add(assignment.range);
  return set;
}

std::string because(std::string_view why) { return why.empty() ? "" : " (" + std::string(why) + ")"; }

std::string not_verified(const Kernel& kernel, const DeviceProfile& device) {
  if (is_verified_on(kernel, device)) return "";
  return "; not verified on " + device.arch + ": its numbers are checked there before it is used";
}

std::string microseconds(double us) { return fmt::format("{:.3g} us", us); }

// "at M 8: 13 us, OTHER 12.9 us"; "" where one of the two was not measured there.
std::string compared(const Choice& choice, size_t own, size_t other, int64_t m) {
  const auto mine = choice.times[own].find(m), theirs = choice.times[other].find(m);
  if (mine == choice.times[own].end() || theirs == choice.times[other].end()) return "";
  return fmt::format("{} at M {}, {} {}", microseconds(mine->second->median_us), m,
                     kernel_of(choice.candidates[other]).name, microseconds(theirs->second->median_us));
}

// What measurements say for a winner: the fastest other candidate at each point that decided.
std::string measured_reason(const Choice& choice, size_t index) {
  std::vector<std::string> points;
  for (const Assignment& assignment : choice.layout.assignments) {
    if (assignment.candidate != index || assignment.measured_at == 0) continue;
    std::optional<size_t> next;
    const auto time = [&](size_t i) { return choice.times[i].find(assignment.measured_at); };
    for (size_t i = 0; i < choice.candidates.size(); ++i) {
      if (i == index || time(i) == choice.times[i].end()) continue;
      if (!next || time(i)->second->median_us < time(*next)->second->median_us) next = i;
    }
    if (next) points.push_back(compared(choice, index, *next, assignment.measured_at));
  }
  constexpr size_t shown = 3;
  const size_t left_out = points.size() > shown ? points.size() - shown : 0;
  points.resize(points.size() - left_out);
  return join(points, "; ") + (left_out == 0 ? "" : fmt::format("; and {} more batch sizes", left_out));
}

std::string selected_reason(const Choice& choice, size_t index) {
  const GatedCandidate& candidate = choice.candidates[index];
  std::string reason = "serves " + text(batches_of(choice, index));
  if (choice.locked)
    return reason + ", as the locked plan has it" + not_verified(kernel_of(candidate), choice.context.device);
  if (choice.heard && asked_for(candidate, choice.request))
    reason += ", as " + choice.request.option() + " asks";
  else if (const std::string measured = measured_reason(choice, index); !measured.empty())
    return reason + ", as measured: " + measured + not_verified(kernel_of(candidate), choice.context.device);
  else
    reason += ", first in the list that passes every gate there";
  const auto& assignments = choice.layout.assignments;
  const bool others_are_fast = std::any_of(assignments.begin(), assignments.end(), [&](const Assignment& assignment) {
    return !is_slow(kernel_of(choice.candidates[assignment.candidate]));
  });
  if (is_slow(kernel_of(candidate)) && others_are_fast)
    reason += "; a large slowdown: nothing faster takes these batch sizes";
  return reason + because(candidate.entry->why) + not_verified(kernel_of(candidate), choice.context.device);
}

std::string eligible_reason(const Choice& choice, size_t index) {
  const GatedCandidate& own = choice.candidates[index];
  std::vector<std::string> losses;
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    BatchSet lost;
    for (const Assignment& assignment : choice.layout.assignments) {
      if (assignment.candidate != i) continue;
      BatchSet common = own.allowed;
      common.intersect(assignment.range);
      for (BatchRange range : common.ranges()) lost.add(range);
    }
    if (lost.empty()) continue;
    const GatedCandidate& winner = choice.candidates[i];
    const std::string subject = std::string(kernel_of(winner).name);
    const bool winner_asked_for = choice.heard && asked_for(winner, choice.request) && !asked_for(own, choice.request);
    int64_t point = 0;
    for (const Assignment& assignment : choice.layout.assignments)
      if (assignment.candidate == i && assignment.measured_at != 0 && point == 0) point = assignment.measured_at;
    const std::string measured = point == 0 ? "" : compared(choice, index, i, point);
    if (choice.locked)
      losses.push_back("for " + text(lost) + " the locked plan has " + subject);
    else if (!measured.empty())
      losses.push_back("for " + text(lost) + " it is not faster by more than noise: " + measured);
    else if (winner_asked_for)
      losses.push_back("for " + text(lost) + " " + choice.request.option() + " asks for " + subject);
    else if (i < index)
      losses.push_back("for " + text(lost) + " " + subject + " stands before it" + because(winner.entry->why));
    else
      losses.push_back("its list line is meant for " +
                       text(batch_range(own.entry->m_min, own.entry->m_max).value_or(BatchRange{})) + ", so " +
                       subject + " serves " + text(lost));
  }
  return "passes every gate; " + join(losses, "; ");
}

Refusal filtered_out(const Choice& choice, const Kernel& kernel) {
  return {Stage::policy, std::string(choice.request.field), std::string(kernel.backend), choice.request.backend,
          choice.request.option() + " asks for another backend than " + std::string(kernel.backend)};
}

Refusal second_layout(const Choice& choice, const Kernel& kernel) {
  const std::string own(kernel.layout->name), taken(choice.layout.packed->name);
  return {Stage::policy, "layout", own, taken,
          "reads layout " + own + ", and the weights of this layer are packed once, as " + taken};
}

bool has_other_layout(const Choice& choice, const Kernel& kernel) {
  return choice.layout.packed != nullptr && !choice.layout.several && kernel.layout != choice.layout.packed &&
         kernel.layout != &checkpoint_layout;
}

Verdict verdict_of(const Choice& choice, size_t index) {
  const GatedCandidate& candidate = choice.candidates[index];
  const Kernel& kernel = kernel_of(candidate);
  std::optional<Refusal> refusal = candidate.refusal;
  if (choice.filtered && !candidate.left_out && !asked_for(candidate, choice.request))
    refusal = filtered_out(choice, kernel);
  else if (!refusal && has_other_layout(choice, kernel))
    refusal = second_layout(choice, kernel);

  Verdict verdict;
  verdict.kernel = &kernel;
  if (refusal) {
    verdict.stage = refusal->stage;
    verdict.field = refusal->field;
    verdict.found = refusal->found;
    verdict.wanted = refusal->wanted;
    verdict.reason = refusal->reason;
    return verdict;
  }
  const bool selected = !batches_of(choice, index).empty();
  verdict.kind = selected ? VerdictKind::selected : VerdictKind::eligible;
  verdict.reason = selected ? selected_reason(choice, index) : eligible_reason(choice, index);
  return verdict;
}

}  // namespace

std::vector<Verdict> verdicts_of(const Choice& choice) {
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < choice.candidates.size(); ++i) verdicts.push_back(verdict_of(choice, i));
  return verdicts;
}

std::string why_not_usable(const Choice& choice, const BatchSet& missing) {
  std::vector<std::string> reasons;
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    const GatedCandidate& candidate = choice.candidates[i];
    if (!asked_for(candidate, choice.request)) continue;
    const Kernel& kernel = kernel_of(candidate);
    std::string reason(kernel.name);
    if (candidate.refusal)
      reason += ": " + candidate.refusal->reason;
    else if (has_other_layout(choice, kernel))
      reason += ": " + second_layout(choice, kernel).reason;
    else
      reason += " serves " + text(candidate.allowed);
    for (const Quarantine* row : candidate.quarantines)
      if (!candidate.refusal) reason += ", is quarantined for " + text(*batch_range(row->m_min, row->m_max));
    reasons.push_back(std::move(reason));
  }
  return "no kernel of " + choice.request.backend + " serves " + text(missing) + ": " + join(reasons, "; ");
}

}  // namespace gearshift
