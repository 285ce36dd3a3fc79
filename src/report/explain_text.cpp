#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/quantities.h"
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

std::string reason_text(const Verdict& verdict) {
  if (verdict.field.empty()) return verdict.reason;
  std::string facts = verdict.field;
  if (!verdict.found.empty()) facts += " is " + verdict.found;
  if (!verdict.wanted.empty()) facts += (verdict.found.empty() ? " wants " : ", wanted ") + verdict.wanted;
  return verdict.reason.empty() ? facts : facts + ": " + verdict.reason;
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
  if (decision.fallback) {
    out += wrapped_paragraph("asked   ", decision.fallback->requested + ": " + decision.fallback->reason, width);
  }
  for (const PlannedRange& range : decision.ranges) {
    const std::string text = fmt::format("{}: {} ({}, activations {})", batch_text(range.m_min, range.m_max),
                                         range.kernel->name, range.source, range.activation);
    out += wrapped_paragraph("chosen  ", text, width);
  }
  using Kind = Table::Kind;
  Table table({{"candidate", Kind::name},
               {"backend", Kind::word},
               {"verdict", Kind::word},
               {"stage", Kind::word},
               {"reason", Kind::sentence}});
  for (const Verdict& verdict : decision.candidates) {
    table.row({std::string(verdict.kernel->name), std::string(verdict.kernel->backend), std::string(name(verdict.kind)),
               std::string(name(verdict.stage)), reason_text(verdict)});
  }
  return out + "\n" + table.render(width);
}

}  // namespace

Result<std::string> explain_text(const Plan& plan, const std::string& layer, size_t width) {
  const std::vector<const LayerPlan*> rows = find_layers(plan, layer);
  if (rows.empty()) return no_such_layer(plan, layer);
  std::string out = plan_heading(plan, width);
  for (const LayerPlan* row : rows) out += "\n" + layer_text(*row, width);
  return out;
}

}  // namespace gearshift
