#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/choices.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/text_parts.h"
#include "report/texts.h"

namespace gearshift {

namespace {

std::string group_table(const std::vector<LayerGroup>& groups, const std::vector<RunsAs>& runs, size_t width) {
  using Kind = Table::Kind;
  const bool any_experts = std::any_of(groups.begin(), groups.end(),
                                       [](const LayerGroup& group) { return group.spec().kind == LayerKind::experts; });
  std::vector<Table::Column> columns = {
      {"rows", Kind::number}, {"layer", Kind::name}, {"N x K", Kind::number}, {"scheme", Kind::name}};
  if (any_experts) columns.push_back({"experts", Kind::number});
  columns.insert(columns.end(), {{"weights", Kind::number}, {"as", Kind::word}});
  Table table(std::move(columns));
  for (size_t i = 0; i < groups.size(); ++i) {
    const LayerGroup& group = groups[i];
    const LayerSpec& layer = group.spec();
    std::vector<std::string> cells = {std::to_string(group.layers.size()), group.pattern, shape_text(layer.n, layer.k),
                                      group.scheme};
    if (any_experts) cells.push_back(layer.kind == LayerKind::experts ? std::to_string(layer.experts) : "");
    cells.insert(cells.end(), {format_bytes(group.weight_bytes), letter_of(runs, i)});
    table.row(std::move(cells));
  }
  return table.render(width);
}

std::string kernel_table(const std::vector<RunsAs>& runs, size_t width) {
  using Kind = Table::Kind;
  Table table({{"as", Kind::word},
               {"batch", Kind::word},
               {"kernel", Kind::name},
               {"arithmetic", Kind::word},
               {"source", Kind::word},
               {"why", Kind::sentence}});
  for (const RunsAs& run : runs) {
    const Decision& decision = run.first->decision();
    bool first = true;
    for (const PlannedRange& range : decision.by_batch()) {
      table.row({first ? run.letter : "", range_text(range.m_min, range.m_max), name_of(range),
                 arithmetic_text(decision, range), std::string(range.source), why_text(decision, range)});
      first = false;
    }
  }
  return table.render(width);
}

std::string totals(const std::vector<LayerGroup>& groups, size_t width) {
  struct Sum {
    int64_t layers = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string, Sum> kernels;
  Sum all;
  for (const LayerGroup& group : groups) {
    std::map<std::string_view, bool> seen;  // a kernel may serve two ranges of one layer
    const auto layers = static_cast<int64_t>(group.layers.size());
    for (const PlannedRange& range : group.decision().by_batch()) {
      if (!seen.emplace(range.kernel->name, true).second) continue;
      Sum& sum = kernels[std::string(range.kernel->name)];
      sum.layers += layers;
      sum.bytes += group.weight_bytes;
    }
    all.layers += layers;
    all.bytes += group.weight_bytes;
  }
  Table table({{"kernel", Table::Kind::name}, {"rows", Table::Kind::number}, {"weights", Table::Kind::number}});
  for (const auto& [kernel, sum] : kernels) table.row({kernel, std::to_string(sum.layers), format_bytes(sum.bytes)});
  table.row({"all", std::to_string(all.layers), format_bytes(all.bytes)});
  return table.render(width);
}

std::string degrees_text(const std::vector<TpDegree>& degrees, size_t width) {
  if (degrees.empty()) return "";
  Table table({{"ranks", Table::Kind::number},
               {"without a rescue", Table::Kind::word},
               {"rows in the way", Table::Kind::number},
               {"the first of them", Table::Kind::sentence}});
  for (const TpDegree& degree : degrees) {
    table.row({std::to_string(degree.degree), degree.ok ? "yes" : "no", degree.ok ? "" : std::to_string(degree.layers),
               obstacle_text(degree)});
  }
  return "\n" + table.render(width);
}

// Ranges of expert rows are batches of tokens; this says what one expert gets of them.
std::string routing_text(const Plan& plan, size_t width) {
  const bool any = std::any_of(plan.layers.begin(), plan.layers.end(),
                               [](const LayerPlan& row) { return !row.decision->token_ranges.empty(); });
  if (!any) return "";
  std::vector<std::string> words;
  for (const int64_t m : plan.policy.batch)
    words.push_back(fmt::format("batch {}: {:.3g}", m, tokens_per_expert(plan.routing, m)));
  return "\n" + wrapped_paragraph("",
                                  fmt::format("tokens an expert can expect ({} of {} experts a token): {}",
                                              plan.routing.top_k, plan.routing.routed, join(words, ", ")),
                                  width);
}

}  // namespace

std::string plan_text(const Plan& plan, size_t width) {
  const std::vector<LayerGroup> groups = group_layers(plan);
  const std::vector<RunsAs> runs = runs_of(groups);
  std::string out = plan_heading(plan, width) + "\n" + group_table(groups, runs, width) + "\n" +
                    kernel_table(runs, width) + routing_text(plan, width) +
                    list_text("shards that need a rescue", rescue_lines(groups), width) + "\n" + totals(groups, width) +
                    "\n" + memory_text(plan, width) + degrees_text(plan.tp, width);
  if (!plan.skipped.empty()) {
    const auto count = static_cast<int64_t>(plan.skipped.size());
    out += "\n" + wrapped_paragraph("",
                                    "left out, no linear layers: " + count_text(count, "module", "modules") + " (" +
                                        printable(join(plan.skipped, ", "), 200) + ")",
                                    width);
  }
  return out + warnings_text(plan.warnings, width);
}

}  // namespace gearshift
