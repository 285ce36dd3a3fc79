#include "plan/refusals.h"

#include <algorithm>

#include "base/text.h"
#include "plan/groups.h"

namespace gearshift {
namespace {

// Rows of one role and one decision.
struct RowGroup {
  SelectedRow first;
  int64_t rows = 0;
};

template <class Predicate>
std::vector<RowGroup> groups_of(const std::vector<SelectedRow>& rows, const Predicate& concerns) {
  std::map<std::pair<const Selection*, std::string>, size_t> index;
  std::vector<RowGroup> groups;
  for (const SelectedRow& row : rows) {
    if (!concerns(*row.selection)) continue;
    const auto [found, is_new] = index.try_emplace({row.selection, role_of(row.layer->name)}, groups.size());
    if (is_new) groups.push_back({row, 0});
    ++groups[found->second].rows;
  }
  return groups;
}

std::string shape(const LayerSpec& layer) {
  return std::string(name(layer.family)) + " N " + std::to_string(layer.n) + " K " + std::to_string(layer.k);
}

std::string title(const RowGroup& group) {
  const std::string& example = group.first.layer->name;
  const std::string who = group.rows == 1 ? printable(example)
                                          : printable(role_of(example)) + " (" + std::to_string(group.rows) +
                                                " layers, such as " + printable(example) + ")";
  return who + ", " + shape(*group.first.layer);
}

ErrorInfo no_kernel(const std::vector<RowGroup>& groups, const SelectionContext& context) {
  const SelectedRow& first = groups.front().first;
  const bool quarantined = std::any_of(groups.begin(), groups.end(), [](const RowGroup& group) {
    return group.first.selection->unserved_by_quarantine;
  });
  ErrorInfo error;
  error.code = quarantined ? ErrorCode::self_check : ErrorCode::no_kernel;
  error.subject = printable(first.layer->name);
  error.found = "no " + std::string(quarantined ? "healthy " : "") + "kernel for " + shape(*first.layer) + " at " +
                text(first.selection->unserved) + " on " + context.device.name;
  if (!first.selection->bound_by.empty()) error.found += " among those that " + first.selection->bound_by + " asks for";
  error.wanted = "a kernel for every batch size";
  error.hint =
      quarantined ? "what gave wrong numbers is quarantined and not used again" : "each candidate's reason follows";
  for (const RowGroup& group : groups) {
    const Selection& selection = *group.first.selection;
    error.details.push_back(title(group) + ", " + text(selection.unserved) + ":");
    for (const Verdict& verdict : selection.decision.candidates)
      error.details.push_back("  " + std::string(verdict.kernel->name) + ": " + verdict.reason);
    for (const std::string& note : selection.quarantined) error.details.push_back("  quarantined: " + note);
    if (selection.decision.candidates.empty())
      error.details.push_back("  no kernel is registered for " + std::string(name(group.first.layer->family)) + " on " +
                              std::string(name(context.device.platform)));
    else if (!context.policy.force_kernel.empty() &&
             std::none_of(selection.decision.candidates.begin(), selection.decision.candidates.end(),
                          [&](const Verdict& verdict) { return verdict.kernel->name == context.policy.force_kernel; }))
      error.details.push_back("  " + context.policy.force_kernel + ": is not registered for " +
                              std::string(name(group.first.layer->family)) + " on " +
                              std::string(name(context.device.platform)));
  }
  return error;
}

ErrorInfo fallback_refused(const std::vector<RowGroup>& groups) {
  const PlanFallback& first = *groups.front().first.selection->decision.fallback;
  ErrorInfo error;
  error.code = ErrorCode::fallback_refused;
  error.subject = "--strict";
  error.found = std::to_string(groups.size()) + (groups.size() == 1 ? " layer group" : " layer groups") +
                " that the requested backend does not serve, first " + printable(groups.front().first.layer->name) +
                " (" + first.requested + ")";
  error.wanted = "every layer served as asked";
  error.hint = "without --strict they fall back";
  for (const RowGroup& group : groups) {
    const PlanFallback& fallback = *group.first.selection->decision.fallback;
    error.details.push_back(title(group) + ", requested " + fallback.requested + ": " + fallback.reason);
  }
  return error;
}

ErrorInfo lock_refused(const std::vector<RowGroup>& groups, const std::string& lock) {
  ErrorInfo error;
  error.code = ErrorCode::no_kernel;
  error.subject = "--lock " + printable(lock);
  error.found = std::to_string(groups.size()) + (groups.size() == 1 ? " layer group" : " layer groups") +
                " that cannot be kept, first " + printable(groups.front().first.layer->name);
  error.wanted = "exactly what that plan chose";
  error.hint = "without --lock the layers are planned anew";
  for (const RowGroup& group : groups)
    error.details.push_back(title(group) + ": " + join(group.first.selection->not_kept, "; "));
  return error;
}

}  // namespace

std::optional<ErrorInfo> refusal_of(const std::vector<SelectedRow>& rows, const SelectionContext& context,
                                    const std::string& lock) {
  const auto lost = groups_of(rows, [](const Selection& selection) { return !selection.not_kept.empty(); });
  if (!lost.empty()) return lock_refused(lost, lock);
  const auto unserved = groups_of(rows, [](const Selection& selection) { return !selection.unserved.empty(); });
  if (!unserved.empty()) return no_kernel(unserved, context);
  if (!context.policy.strict) return std::nullopt;
  const auto fallen = groups_of(rows, [](const Selection& s) { return s.fallback != FallbackKind::none; });
  if (!fallen.empty()) return fallback_refused(fallen);
  return std::nullopt;
}

}  // namespace gearshift
