#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "report/choices.h"
#include "report/quantities.h"
#include "report/remedies.h"
#include "report/table.h"
#include "report/text_parts.h"
#include "report/texts.h"

namespace gearshift {

namespace {

// Rows called `wanted`, by their own name, a part's or a module's; where none is, those that it matches as a pattern.
std::vector<const LayerPlan*> find_layers(const Plan& plan, const std::string& wanted) {
  std::vector<const LayerPlan*> exact, matching;
  for (const LayerPlan& row : plan.layers) {
    std::vector<std::string_view> names = {row.layer.name};
    names.insert(names.end(), row.layer.parts.begin(), row.layer.parts.end());
    for (const Module& module : row.layer.modules) names.push_back(module.name);
    if (std::find(names.begin(), names.end(), wanted) != names.end()) exact.push_back(&row);
    const auto matches = [&](std::string_view name) { return glob_match(wanted, name); };
    if (std::any_of(names.begin(), names.end(), matches)) matching.push_back(&row);
  }
  return exact.empty() ? matching : exact;
}

ErrorInfo no_such_layer(const Plan& plan, const std::string& wanted) {
  std::vector<std::string_view> names;
  for (const LayerPlan& row : plan.layers) {
    names.push_back(row.layer.name);
    names.insert(names.end(), row.layer.parts.begin(), row.layer.parts.end());
  }
  ErrorInfo error{ErrorCode::usage, "--explain", printable(wanted), "the name of a linear layer of this plan", "", {}};
  const std::vector<std::string> near = near_names(wanted, names, 5);
  if (!near.empty()) error.hint = "did you mean " + printable(join(near, ", "), 400) + "?";
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < std::min(kShown, plan.layers.size()); ++i)
    error.details.push_back(printable(plan.layers[i].layer.name));
  if (plan.layers.size() > kShown) error.details.push_back(fmt::format("... and {} more", plan.layers.size() - kShown));
  return error;
}

std::string facts_of(const Verdict& verdict) {
  if (verdict.field.empty()) return "";
  std::string facts = verdict.field;
  if (!verdict.found.empty()) facts += " is " + verdict.found;
  if (!verdict.wanted.empty()) facts += (verdict.found.empty() ? " wants " : ", wanted ") + verdict.wanted;
  return facts;
}

std::string reason_text(const Verdict& verdict, const LayerPlan& row) {
  const std::string facts = facts_of(verdict), change = how_to_get_it(verdict, row);
  std::string text = facts + (facts.empty() || verdict.reason.empty() ? "" : ": ") + verdict.reason;
  if (!change.empty()) text += (text.empty() ? "" : "; ") + change;
  return text;
}

std::string chosen_text(const Decision& decision, const PlannedRange& range) {
  const std::string why = why_text(decision, range);
  return fmt::format("{}: {} ({}, activations {}{})", batch_text(range.m_min, range.m_max), name_of(range),
                     range.source, range.activation, why == range.source ? "" : "; " + why);
}

std::string layer_text(const LayerPlan& row, size_t width) {
  const LayerSpec& spec = row.layer;
  const Decision& decision = *row.decision;
  std::string out;
  std::string what = fmt::format("{}: N x K {}, {}, family {}, weights {}", spec.name, shape_text(spec.n, spec.k),
                                 scheme_name(spec.scheme), name(spec.family), format_bytes(spec.weight_bytes));
  if (spec.kind == LayerKind::experts) what += ", " + count_text(spec.experts, "expert", "experts");
  out += wrapped_paragraph("layer   ", printable(what, 1000), width);
  if (!spec.parts.empty()) out += wrapped_paragraph("parts   ", printable(join(spec.parts, ", "), 1000), width);
  if (spec.shard) out += wrapped_paragraph("shard   ", printable(shard_text(row), 1000), width);
  if (decision.fallback) {
    out += wrapped_paragraph("asked   ", decision.fallback->requested + ": " + decision.fallback->reason, width);
  }
  for (const PlannedRange& range : decision.by_batch()) {
    out += wrapped_paragraph("chosen  ", chosen_text(decision, range), width);
  }
  using Kind = Table::Kind;
  Table table({{"candidate", Kind::name},
               {"backend", Kind::word},
               {"verdict", Kind::word},
               {"stage", Kind::word},
               {"reason", Kind::sentence}});
  for (const Verdict& verdict : decision.candidates) {
    table.row({std::string(verdict.kernel->name), std::string(verdict.kernel->backend), std::string(name(verdict.kind)),
               std::string(name(verdict.stage)), reason_text(verdict, row)});
  }
  return out + "\n" + table.render(width);
}

// ---- many layers ----------------------------------------------------------------------------------------------------

// Verdicts that say the same of several kernels.
struct SharedVerdict {
  const Verdict* first = nullptr;
  std::vector<std::string> kernels;
};

std::vector<SharedVerdict> lines_of(const LayerPlan& row) {
  std::vector<SharedVerdict> lines;
  for (const Verdict& verdict : row.decision->candidates) {
    if (verdict.kind == VerdictKind::selected) continue;
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const SharedVerdict& line) {
      const Verdict& other = *line.first;
      const bool alike = verdict.field.empty() ? verdict.kind == VerdictKind::eligible || verdict.reason == other.reason
                                               : verdict.found == other.found && verdict.wanted == other.wanted;
      return other.kind == verdict.kind && other.stage == verdict.stage && other.field == verdict.field && alike &&
             what_would_change_it(other, row) == what_would_change_it(verdict, row);
    });
    if (same == lines.end())
      lines.push_back({&verdict, {std::string(verdict.kernel->name)}});
    else
      same->kernels.emplace_back(verdict.kernel->name);
  }
  return lines;
}

std::string answer_key(const Decision& decision) {
  std::string key;
  for (const PlannedRange& range : decision.by_batch())
    key +=
        fmt::format("{}-{} {} {} {}\n", range.m_min, range.m_max, range.kernel->name, range.source, range.activation);
  for (const Verdict& verdict : decision.candidates)
    key += fmt::format("{} {} {} {} {} {}\n", verdict.kernel->name, name(verdict.kind), name(verdict.stage),
                       verdict.field, verdict.found, verdict.wanted);
  if (decision.fallback) key += decision.fallback->reason;
  return key;
}

void add_answer(Table& table, const std::string& letter, const LayerPlan& row) {
  const Decision& decision = *row.decision;
  std::string shown = letter;
  const auto add = [&](std::string_view what, std::string text) {
    table.row({std::exchange(shown, ""), std::string(what), std::move(text)});
  };
  if (decision.fallback) add("asked", decision.fallback->requested + ": " + decision.fallback->reason);
  for (const PlannedRange& range : decision.by_batch()) add("chosen", chosen_text(decision, range));
  for (const SharedVerdict& line : lines_of(row)) {
    const Verdict& verdict = *line.first;
    const std::string facts = facts_of(verdict), change = how_to_get_it(verdict, row);
    std::string text = join(line.kernels, ", ") + ": " +
                       (!facts.empty()                          ? facts
                        : verdict.kind == VerdictKind::eligible ? "passes every gate"
                                                                : verdict.reason);
    if (!change.empty()) text += "; " + change;
    add(verdict.kind == VerdictKind::eligible ? name(verdict.kind) : name(verdict.stage), std::move(text));
  }
}

// Groups with the same answer share it: what differs between shapes only is told once.
std::string groups_text(const std::vector<const LayerPlan*>& rows, size_t width) {
  using Kind = Table::Kind;
  Table who({{"rows", Kind::number},
             {"layer", Kind::name},
             {"N x K", Kind::number},
             {"scheme", Kind::name},
             {"family", Kind::word},
             {"see", Kind::word}});
  Table answers({{"", Kind::word}, {"stage", Kind::word}, {"kernels and reason", Kind::sentence}});
  struct Group {
    const LayerPlan* first;
    std::string pattern, letter;
    int64_t rows;
  };
  std::vector<Group> groups;
  std::map<std::string, size_t> group_index;
  std::map<std::string, std::string> letters_by_answer;
  for (const LayerPlan* row : rows) {
    const std::string answer = answer_key(*row->decision);
    const auto [letter, is_new] = letters_by_answer.try_emplace(answer, letters(letters_by_answer.size()));
    if (is_new) add_answer(answers, letter->second, *row);
    const LayerSpec& layer = row->layer;
    const std::string pattern = role_pattern(layer.name);
    const auto [group, fresh] = group_index.try_emplace(
        fmt::format("{}\n{}\n{}\n{}\n{}", pattern, layer.n, layer.k, scheme_name(layer.scheme), letter->second),
        groups.size());
    if (fresh) groups.push_back({row, pattern, letter->second, 0});
    ++groups[group->second].rows;
  }
  for (const Group& group : groups) {
    const LayerSpec& layer = group.first->layer;
    who.row({std::to_string(group.rows), group.rows == 1 ? layer.name : group.pattern, shape_text(layer.n, layer.k),
             scheme_name(layer.scheme), std::string(name(layer.family)), group.letter});
  }
  return who.render(width) + "\n" + answers.render(width);
}

}  // namespace

Result<std::string> explain_text(const Plan& plan, const std::string& layer, size_t width) {
  const std::vector<const LayerPlan*> rows = find_layers(plan, layer);
  if (rows.empty()) return no_such_layer(plan, layer);
  const std::string heading = plan_heading(plan, width) + origins_text(plan, width) + "\n";
  return heading + (rows.size() == 1 ? layer_text(*rows.front(), width) : groups_text(rows, width));
}

}  // namespace gearshift
