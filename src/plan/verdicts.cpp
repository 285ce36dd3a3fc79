// Verdicts and their reasons. Nothing is decided here.
#include <algorithm>

#include "base/text.h"
#include "plan/choice.h"

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
  const auto& verified = kernel.contract.verified;
  const auto is_this = [&](std::string_view v) { return v == device.arch || v == device.name; };
  if (verified.empty() || std::any_of(verified.begin(), verified.end(), is_this)) return "";
  return "; not verified on " + device.arch + ": its numbers are checked there before it is used";
}

std::string selected_reason(const Choice& choice, size_t index) {
  const GatedCandidate& candidate = choice.candidates[index];
  std::string reason = "serves " + text(batches_of(choice, index));
  if (choice.heard && asked_for(candidate, choice.request))
    reason += ", as " + choice.request.option() + " asks";
  else
    reason += ", first in the list that passes every gate there";
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
    if (winner_asked_for)
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
  return choice.layout.packed != nullptr && kernel.layout != choice.layout.packed &&
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
