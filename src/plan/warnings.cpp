#include "plan/warnings.h"

#include <algorithm>

#include "base/text.h"
#include "plan/arithmetic.h"
#include "plan/groups.h"
#include "plan/registry_rules.h"

namespace gearshift {
namespace {

BatchSet upgraded_batches(const LayerSpec& layer, const Decision& decision) {
  BatchSet set;
  for (const PlannedRange& range : decision.ranges)
    if (upgrades_activations(*range.kernel, layer)) set.add(*batch_range(range.m_min, range.m_max));
  return set;
}

// "KERNEL, KERNEL: REASON; ..." for the candidates that were not chosen and that `concerns` picks; "" when there are
// none.
template <class Predicate>
std::string reasons_of_others(const Decision& decision, const Predicate& concerns) {
  std::vector<std::pair<std::string, std::string_view>> kernels_and_reason;
  for (const Verdict& verdict : decision.candidates) {
    if (verdict.kind == VerdictKind::selected || !concerns(*verdict.kernel)) continue;
    const auto same = std::find_if(kernels_and_reason.begin(), kernels_and_reason.end(),
                                   [&](const auto& known) { return known.second == verdict.reason; });
    if (same == kernels_and_reason.end())
      kernels_and_reason.emplace_back(verdict.kernel->name, verdict.reason);
    else
      same->first += ", " + std::string(verdict.kernel->name);
  }
  std::vector<std::string> reasons;
  for (const auto& [kernels, reason] : kernels_and_reason) reasons.push_back(kernels + ": " + std::string(reason));
  return join(reasons, "; ");
}

std::string of_family_on_platform(const LayerSpec& layer, const DeviceProfile& device) {
  return std::string(name(layer.family)) + " on " + std::string(name(device.platform));
}

// Every cause named here is the true one: what this build lacks is never put down to the device.
std::string why_slow(const LayerSpec& layer, const Decision& decision, const SelectionContext& context) {
  const DeviceProfile& device = context.device;
  const bool host_stands_in =
      std::none_of(decision.candidates.begin(), decision.candidates.end(),
                   [&](const Verdict& verdict) { return verdict.kernel->platform == device.platform; });
  if (host_stands_in)
    return described(context.registry) + " has no kernel for " + of_family_on_platform(layer, device) +
           ", the host's stand in";
  const std::string reasons = reasons_of_others(decision, [](const Kernel& kernel) { return !is_slow(kernel); });
  return reasons.empty()
             ? described(context.registry) + " has no faster kernel for " + of_family_on_platform(layer, device)
             : reasons;
}

std::string why_upgraded(const LayerSpec& layer, const Decision& decision, const SelectionContext& context) {
  const std::string asked(activation_word(layer, context.policy.dtype));
  const std::string change = std::string(activation_word(context.policy.dtype)) + " instead of " + asked + " for " +
                             text(upgraded_batches(layer, decision));
  const auto as_asked = [&](const Kernel& kernel) { return !upgrades_activations(kernel, layer); };
  std::string reasons =
      reasons_of_others(decision, [&](const Kernel& kernel) { return as_asked(kernel) && !is_slow(kernel); });
  if (reasons.empty()) reasons = reasons_of_others(decision, as_asked);
  if (reasons.empty())
    reasons = described(context.registry) + " has no kernel that multiplies " + asked + " activations for " +
              of_family_on_platform(layer, context.device);
  return change + ", because " + reasons;
}

struct Pending {
  std::string code, family, requested;
  Groups causes;
};

std::string_view headline(std::string_view code) {
  if (code == "backend_not_covered" || code == "backend_not_usable") return "fell back to the automatic choice";
  if (code == "emulation") return "only slow kernels are left";
  if (code == "activation_upgraded")
    return "activations are more precise than the checkpoint's (--arithmetic exact refuses)";
  if (code == "contradiction") return "stored values contradict the configuration";
  if (code == "quarantined") return "left out for wrong numbers on this device";
  return "modules left out, their scheme is not loaded";
}

Warning written(const Pending& pending) {
  std::vector<std::string> causes;
  for (const Groups::Group& group : pending.causes.groups()) causes.push_back(group.text + " [" + counted(group) + "]");
  const std::string subject = pending.family.empty() ? "" : pending.family + ": ";
  return {pending.code, pending.family, pending.requested, pending.causes.rows(),
          subject + std::string(headline(pending.code)) + ": " + join(causes, "; ")};
}

class Book {
 public:
  void add(std::string_view code, std::string_view family, const std::string& requested, const std::string& cause,
           const std::string& row) {
    auto entry = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& p) {
      return p.code == code && p.family == family && p.requested == requested;
    });
    if (entry == pending_.end()) {
      pending_.push_back({std::string(code), std::string(family), requested, {}});
      entry = std::prev(pending_.end());
    }
    entry->causes.add(cause, row);
  }
  std::vector<Warning> warnings() const {
    std::vector<Warning> all;
    for (const Pending& pending : pending_) all.push_back(written(pending));
    return all;
  }

 private:
  std::vector<Pending> pending_;
};

// What one decision has to say; rows of one class and request say the same.
struct Saying {
  std::string_view code;
  std::string requested, cause;
};

std::vector<Saying> sayings_of(const LayerSpec& layer, const Selection& selection, const SelectionContext& context) {
  const Decision& decision = selection.decision;
  std::vector<Saying> sayings;
  if (selection.fallback != FallbackKind::none)
    sayings.push_back({selection.fallback == FallbackKind::not_covered ? "backend_not_covered" : "backend_not_usable",
                       decision.fallback->requested, decision.fallback->reason});
  const bool expected = context.registry.rules.emulation_is_expected && !selection.passed_over;
  if (!expected && std::all_of(decision.ranges.begin(), decision.ranges.end(),
                               [](const PlannedRange& range) { return is_slow(*range.kernel); }))
    sayings.push_back({"emulation", "", why_slow(layer, decision, context)});
  if (!decision.differs.empty()) sayings.push_back({"activation_upgraded", "", why_upgraded(layer, decision, context)});
  if (!selection.quarantined.empty()) sayings.push_back({"quarantined", "", join(selection.quarantined, "; ")});
  return sayings;
}

}  // namespace

std::vector<Warning> warnings_of(const std::vector<SelectedRow>& rows, const std::vector<UnknownModule>& unknown,
                                 const SelectionContext& context) {
  std::map<const Selection*, std::vector<Saying>> said;
  Book book;
  for (const SelectedRow& row : rows) {
    const auto [sayings, is_new] = said.try_emplace(row.selection);
    if (is_new) sayings->second = sayings_of(*row.layer, *row.selection, context);
    for (const Saying& saying : sayings->second)
      book.add(saying.code, name(row.layer->family), saying.requested, saying.cause, row.layer->name);
  }
  for (const UnknownModule& module : unknown) book.add("unknown_scheme", "", "", printable(module.scheme), module.name);

  return book.warnings();
}

std::vector<Warning> warnings_of_values(const std::vector<RowNote>& notes) {
  Book book;
  for (const RowNote& note : notes)
    book.add("contradiction", name(note.layer->family), "", note.sentence, note.layer->name);
  return book.warnings();
}

}  // namespace gearshift
