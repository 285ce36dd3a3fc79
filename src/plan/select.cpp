#include "plan/select.h"

#include <algorithm>

#include "layer/stored_bits.h"
#include "plan/arithmetic.h"
#include "plan/choice.h"
#include "plan/lock.h"
#include "plan/measured.h"
#include "plan/registry_rules.h"

namespace gearshift {
namespace {

// `binding`: only kernels of the requested backend.
std::vector<Contender> contenders_of(const Choice& choice, bool binding) {
  std::vector<Contender> contenders;
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    const GatedCandidate& candidate = choice.candidates[i];
    if (candidate.refusal || (binding && !asked_for(candidate, choice.request))) continue;
    Contender contender;
    contender.candidate = i;
    contender.tier = choice.heard && !asked_for(candidate, choice.request) ? 1 : 0;
    contender.allowed = candidate.allowed;
    // A line that prefers no batch size at all is a line without preference; one kernel for all has no use for any.
    if (!one_for_all(choice.context.policy))
      contender.preferred = batch_range(candidate.entry->m_min, candidate.entry->m_max).value_or(BatchRange{});
    contender.layout = kernel_of(candidate).layout;
    contenders.push_back(std::move(contender));
  }
  return contenders;
}

void decide_fallback(const Choice& choice, const BatchSet& missing, Selection& selection) {
  if (!selection.requested || missing.empty()) return;
  std::string reason;
  if (choice.heard) {
    selection.fallback = FallbackKind::not_usable;
    reason = why_not_usable(choice, missing);
  } else {
    selection.fallback = FallbackKind::not_covered;
    reason = choice.request.backend + " has no kernel for " + std::string(name(choice.layer.family)) + " on " +
             std::string(name(choice.context.device.platform)) + " in " + described(choice.context.registry);
  }
  selection.decision.fallback = PlanFallback{choice.request.backend, std::move(reason)};
}

// A forced kernel of another backend than the requested one.
void decide_override(const Choice& choice, const Force& force, const BatchSet& missing, Selection& selection) {
  if (!selection.requested || missing.empty()) return;
  selection.fallback = FallbackKind::not_usable;
  selection.decision.fallback =
      PlanFallback{choice.request.backend, std::string(force.kernel) + " is forced: " + std::string(force.why)};
}

// Whether some line before the first chosen one failed a gate, the backend filter aside.
bool passed_over(const Choice& choice) {
  if (choice.layout.assignments.empty()) return false;
  const size_t first = choice.layout.assignments.front().candidate;
  return std::any_of(choice.candidates.begin(), choice.candidates.begin() + static_cast<std::ptrdiff_t>(first),
                     [&](const GatedCandidate& candidate) {
                       return candidate.refusal && !(choice.filtered && !asked_for(candidate, choice.request));
                     });
}

// ---- what follows from the chosen kernels ---------------------------------------------------------------------------

void fill_ranges(const Choice& choice, Decision& decision) {
  for (const Assignment& assignment : choice.layout.assignments) {
    PlannedRange range;
    range.m_min = assignment.range.min;
    range.m_max = assignment.range.max == kNoBound ? 0 : assignment.range.max;
    range.kernel = &kernel_of(choice.candidates[assignment.candidate]);
    range.activation = activation_word(*range.kernel, choice.layer, choice.context.policy.dtype);
    range.tactic = assignment.tactic;
    if (assignment.measured_at != 0) range.source = "measured";
    PlannedRange* last = decision.ranges.empty() ? nullptr : &decision.ranges.back();
    const bool goes_on = last != nullptr && last->kernel == range.kernel && last->tactic == range.tactic &&
                         last->m_max == range.m_min - 1;
    if (!goes_on) {
      decision.ranges.push_back(range);
      continue;
    }
    last->m_max = range.m_max;
    if (assignment.measured_at != 0) last->source = "measured";
  }
}

void fill_arithmetic(const LayerSpec& layer, Decision& decision) {
  auto range = std::find_if(decision.ranges.begin(), decision.ranges.end(),
                            [&](const PlannedRange& r) { return upgrades_activations(*r.kernel, layer); });
  if (range != decision.ranges.end())
    decision.differs = "activation_upgraded";
  else
    range = decision.ranges.begin();
  decision.weight_arithmetic = name(layer.scheme.weight.format);
  decision.activation_arithmetic = range->activation;
  decision.accumulator = range->kernel->accumulator;
}

// Shapes come from files; an account that would overflow says "more than there is".
uint64_t times(int64_t bytes, int64_t count) {
  uint64_t product = 0;
  const bool overflows = __builtin_mul_overflow(static_cast<uint64_t>(std::max<int64_t>(bytes, 0)),
                                                static_cast<uint64_t>(count), &product);
  return overflows ? std::numeric_limits<uint64_t>::max() : product;
}

void fill_memory(const Choice& choice, Decision& decision) {
  std::vector<const Layout*> counted = {&checkpoint_layout};
  for (const PlannedRange& range : decision.ranges) {
    const Layout* layout = range.kernel->layout;
    if (std::find(counted.begin(), counted.end(), layout) != counted.end()) continue;
    counted.push_back(layout);
    const uint64_t bytes = times(layout->bytes(choice.layer), std::max<int64_t>(choice.layer.experts, 1));
    if (__builtin_add_overflow(decision.second_layout_bytes, bytes, &decision.second_layout_bytes))
      decision.second_layout_bytes = std::numeric_limits<uint64_t>::max();
  }
  decision.scale_bytes = scale_bytes(choice.layer);
  // Weights are packed straight from the mapped file, so nothing is held besides the packed bytes.
  decision.prepare_peak_bytes = decision.second_layout_bytes;
  for (int64_t m : choice.context.policy.batch) {
    const Kernel& kernel = *range_for(decision, m).kernel;
    const int64_t bytes =
        kernel.workspace_bytes ? kernel.workspace_bytes(choice.layer, m, choice.context.policy.threads) : 0;
    decision.workspace_bytes.emplace_back(m, bytes);
  }
}

bool can_run_here(const DeviceProfile& device, const Decision& decision) {
  return device.present && std::all_of(decision.ranges.begin(), decision.ranges.end(), [&](const PlannedRange& range) {
           const Platform platform = range.kernel->platform;
           return (platform == Platform::cpu || platform == device.platform) && range.kernel->layout != &engine_layout;
         });
}

// ---- quarantines ----------------------------------------------------------------------------------------------------

std::vector<std::string> quarantine_notes(const Choice& choice) {
  std::vector<std::string> notes;
  for (const GatedCandidate& candidate : choice.candidates) {
    if (choice.filtered && !asked_for(candidate, choice.request)) continue;
    for (const Quarantine* row : candidate.quarantines)
      notes.push_back(row->kernel + " for " + text(*batch_range(row->m_min, row->m_max)) +
                      (row->reason.empty() ? "" : ": " + row->reason));
  }
  return notes;
}

bool served_without_quarantines(const Choice& choice, const BatchSet& unserved) {
  BatchSet allowed;
  for (const GatedCandidate& candidate : choice.candidates)
    if (choice.filtered && !asked_for(candidate, choice.request))
      continue;
    else if (!candidate.refusal || candidate.refusal->stage == Stage::self_check)
      for (BatchRange range : candidate.contract_allows.ranges()) allowed.add(range);
  return std::all_of(unserved.ranges().begin(), unserved.ranges().end(),
                     [&](BatchRange range) { return allowed.contains(range); });
}

void keep_locked(const RecordedLayer& locked, Choice& choice, Selection& selection) {
  Pinned pinned = pin(locked, choice);
  selection.not_kept = std::move(pinned.refusals);
  if (!selection.not_kept.empty()) return;
  choice.layout = std::move(pinned.layout);
  choice.locked = true;
  selection.requested = false;
  selection.bound_by.clear();
  choice.heard = choice.filtered = false;
}

}  // namespace

bool is_slow(const Kernel& kernel) { return kernel.backend == "emulation" || kernel.backend == "reference"; }

Selection select(const LayerSpec& layer, const RequestRule& asked, const ListRoute* route,
                 const SelectionContext& context, Layouts layouts, const RecordedLayer* locked) {
  Selection selection;
  Decision& decision = selection.decision;
  decision.layer_class = layer_class(layer);

  const RegistryRules& rules = context.registry.rules;
  const LayerSpec seen = as_seen(layer, context);
  const RequestRule request = as_heard(asked, case_of(seen, asked, context), rules);
  const LayerCase layer_case = case_of(seen, request, context);
  const RequestRules& request_rules = seen.kind == LayerKind::experts ? rules.experts : rules.linear;

  Choice choice{seen, request, context, lines_of(layer_case, context), {}, {}};
  const Force* force = force_of(layer_case, context);
  if (force != nullptr) add_forced_line(*force, layer_case, context, choice.lines);
  for (const ListEntry& line : choice.lines)
    choice.candidates.push_back(candidate_of(line, layer_case, route, force, decision.layer_class, context));

  const bool covered = std::any_of(choice.candidates.begin(), choice.candidates.end(),
                                   [&](const GatedCandidate& candidate) { return asked_for(candidate, request); });
  const bool refused_uncovered = request_rules.not_covered == Unserved::is_refused;
  const bool speaks_of_layer =
      covered || refused_uncovered || request.scope != RequestRule::Scope::global || seen.family != Family::bf16;
  selection.requested = request.asks() && speaks_of_layer && context.policy.force_kernel.empty();
  choice.heard = selection.requested && force == nullptr && (covered || refused_uncovered);
  const bool binding =
      choice.heard && (covered ? request_rules.not_usable : request_rules.not_covered) == Unserved::is_refused;
  if (binding) selection.bound_by = request.option();

  const std::vector<Contender> contenders = contenders_of(choice, binding);
  choice.layout = layouts == Layouts::any ? any_layouts(contenders) : choose_layout(contenders);
  BatchSet served_as_asked;
  for (const Assignment& assignment : choice.layout.assignments)
    if (asked_for(choice.candidates[assignment.candidate], request)) served_as_asked.add(assignment.range);
  const BatchSet missing = served_as_asked.complement();
  choice.layer_class = decision.layer_class;
  choice.times = measured_points(choice);
  choice.layout.assignments = with_measurements(choice);
  choice.filtered = choice.heard && (binding || missing.empty());
  if (locked != nullptr) keep_locked(*locked, choice, selection);
  if (force != nullptr && !choice.locked)
    decide_override(choice, *force, missing, selection);
  else if (!binding && !choice.locked)
    decide_fallback(choice, missing, selection);

  decision.candidates = verdicts_of(choice);
  selection.quarantined = quarantine_notes(choice);
  selection.unserved = batches(choice.layout.assignments).complement();
  selection.passed_over = passed_over(choice);
  fill_ranges(choice, decision);
  if (!selection.unserved.empty()) {
    selection.unserved_by_quarantine = served_without_quarantines(choice, selection.unserved);
    return selection;
  }
  fill_arithmetic(seen, decision);
  fill_memory(choice, decision);
  decision.runnable = can_run_here(context.device, decision);
  return selection;
}

}  // namespace gearshift
