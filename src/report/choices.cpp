#include "report/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"

namespace gearshift {

namespace {

std::string key_of(const Decision& decision) {
  std::string key;
  for (const PlannedRange& range : decision.by_batch()) {
    key += fmt::format("{}-{} {} {} {}\n", range.m_min, range.m_max, range.kernel->name, range.source,
                       arithmetic_text(decision, range));
  }
  if (decision.fallback) key += decision.fallback->requested + "\n" + decision.fallback->reason;
  return key;
}

// "cpu_x (device: isa)" for a candidate that stood before the chosen one.
std::string passed_over(const Verdict& verdict) {
  if (verdict.kind != VerdictKind::rejected) return fmt::format("{} (other batch sizes)", verdict.kernel->name);
  return fmt::format("{} ({}{}{})", verdict.kernel->name, name(verdict.stage), verdict.field.empty() ? "" : ": ",
                     verdict.field);
}

}  // namespace

std::string letters(size_t number) {
  std::string out(1, static_cast<char>('A' + number % 26));
  for (number /= 26; number > 0; number = (number - 1) / 26) {
    out.insert(out.begin(), static_cast<char>('A' + (number - 1) % 26));
  }
  return out;
}

std::vector<RunsAs> runs_of(const std::vector<LayerGroup>& groups) {
  std::vector<RunsAs> runs;
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto [found, fresh] = index.try_emplace(key_of(groups[i].decision()), runs.size());
    if (fresh) runs.push_back({letters(runs.size()), &groups[i], {}});
    runs[found->second].groups.push_back(i);
  }
  return runs;
}

const std::string& letter_of(const std::vector<RunsAs>& runs, size_t index) {
  static const std::string none;
  for (const RunsAs& run : runs) {
    if (std::find(run.groups.begin(), run.groups.end(), index) != run.groups.end()) return run.letter;
  }
  return none;
}

std::string name_of(const PlannedRange& range) {
  const std::string kernel(range.kernel->name);
  return range.tactic.empty() ? kernel : fmt::format("{} ({})", kernel, range.tactic);
}

std::string arithmetic_text(const Decision& decision, const PlannedRange& range) {
  return fmt::format("{} x {}", decision.weight_arithmetic, range.activation);
}

std::string why_text(const Decision& decision, const PlannedRange& range) {
  if (range.source != "static") return std::string(range.source);
  if (decision.fallback && range.kernel->backend != decision.fallback->requested)
    return decision.fallback->requested + ", which was asked for, does not serve it";
  std::vector<std::string> before;
  for (const Verdict& verdict : decision.candidates) {
    if (verdict.kernel == range.kernel) break;
    before.push_back(passed_over(verdict));
  }
  if (before.empty()) return "first in the list";
  constexpr size_t kShown = 2;
  const size_t more = before.size() > kShown ? before.size() - kShown : 0;
  before.resize(before.size() - more);
  return "after " + join(before, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace gearshift
