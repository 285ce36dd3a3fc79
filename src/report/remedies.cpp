#include "report/remedies.h"

#include <fmt/format.h>

#include <algorithm>

namespace gearshift {

namespace {

std::string backend_option(const LayerPlan& row, std::string_view backend) {
  return fmt::format("--{} {}", row.layer.kind == LayerKind::experts ? "moe-backend" : "linear-backend", backend);
}

// A kernel that lost: by its backend where it is the first of it that passes, else without what won or stands before
// it.
std::string to_win(const Verdict& verdict, const LayerPlan& row) {
  const Decision& decision = *row.decision;
  const auto first = std::find_if(decision.candidates.begin(), decision.candidates.end(), [&](const Verdict& other) {
    return other.kernel->backend == verdict.kernel->backend && other.kind != VerdictKind::rejected;
  });
  if (first->kernel == verdict.kernel && !decision.fallback) return backend_option(row, verdict.kernel->backend);
  std::string names;
  bool before = true;
  for (const Verdict& other : decision.candidates) {
    before = before && other.kernel != verdict.kernel;
    if (other.kind == VerdictKind::selected || (before && other.kind == VerdictKind::eligible))
      names += (names.empty() ? "" : ",") + std::string(other.kernel->name);
  }
  return "--disable " + names;
}

std::string to_allow(const Verdict& verdict, const LayerPlan& row) {
  if (verdict.field == "disable") return "no --disable " + verdict.found;
  if (verdict.field == "kernel") return "no --kernel " + verdict.wanted;
  if (verdict.field == "arithmetic") return "--arithmetic higher";
  if (verdict.field == "single_kernel") return "no --single-kernel";
  if (verdict.field == "layout") return fmt::format("a --memory-budget that pays for {} too", verdict.found);
  if (verdict.field == "linear_backend" || verdict.field == "moe_backend" || verdict.field == "layer" ||
      verdict.field == "on_request")
    return backend_option(row, verdict.kernel->backend);
  return "";
}

std::string numbers_of(const Verdict& verdict) {
  if (verdict.field.empty() || verdict.wanted.empty()) return "";
  return fmt::format("{}: {}{}", verdict.field, verdict.wanted,
                     verdict.found.empty() ? "" : " instead of " + verdict.found);
}

}  // namespace

std::string what_would_change_it(const Verdict& verdict, const LayerPlan& row) {
  if (verdict.kind == VerdictKind::selected) return "";
  if (verdict.kind == VerdictKind::eligible) return to_win(verdict, row);
  switch (verdict.stage) {
    case Stage::policy:
      return to_allow(verdict, row);
    case Stage::build:
      return verdict.wanted.empty() ? "a build that has it" : "a build with " + verdict.wanted;
    case Stage::device:
      if (verdict.wanted.empty()) return "another device";
      if (verdict.field == "archs") return "a device of " + verdict.wanted;
      return fmt::format("a device with {} {}", verdict.field, verdict.wanted);
    case Stage::layer:
      return numbers_of(verdict);
    case Stage::self_check:
      return "a version of it that `gearshift verify` finds right";
    case Stage::rank:
      return "--selection static";
  }
  return "";
}

std::string how_to_get_it(const Verdict& verdict, const LayerPlan& row) {
  const std::string change = what_would_change_it(verdict, row);
  if (change.empty()) return "";
  // Gates behind the one that refused have not been asked.
  return (verdict.kind == VerdictKind::rejected ? "it needs " : "to get it: ") + change;
}

}  // namespace gearshift
