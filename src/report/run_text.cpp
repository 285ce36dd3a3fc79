#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "report/choices.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/text_parts.h"
#include "report/texts.h"

namespace gearshift {

namespace {

// What was measured for one group of layers at one batch size.
struct Cell {
  std::string kernel;
  double time_us = 0, gbytes_per_s = 0;  // sums over `timed` layers
  int64_t timed = 0;
  double worst_error = 0;
  std::optional<double> divergence;
  bool ok = true;
};
using Cells = std::map<int64_t, Cell>;  // by batch size

void add(Cell& cell, const Measurement& m) {
  cell.kernel = m.kernel;
  if (m.timing) {
    cell.time_us += m.timing->median_us;
    cell.gbytes_per_s += m.gbytes_per_s;
    ++cell.timed;
  }
  cell.worst_error = std::max(cell.worst_error, m.comparison.relative_error);
  if (m.comparison.divergence) cell.divergence = std::max(cell.divergence.value_or(0), *m.comparison.divergence);
  cell.ok = cell.ok && m.comparison.ok;
}

const PlannedRange* range_of(const Decision& decision, int64_t m) {
  for (const PlannedRange& range : decision.by_batch()) {
    if (m >= range.m_min && (range.m_max == 0 || m <= range.m_max)) return &range;
  }
  return nullptr;
}

void add_rows(Table& table, const LayerGroup& group, const Cells& cells) {
  table.section(group_title(group));
  const PlannedRange* shown = nullptr;
  for (const auto& [m, cell] : cells) {
    const PlannedRange* range = range_of(group.decision(), m);
    const bool first = range != shown;
    shown = range;
    std::string error = error_text(cell.worst_error) + (cell.ok ? "" : " FAIL");
    std::string time = cell.timed > 0 ? time_text(cell.time_us / static_cast<double>(cell.timed)) : "-";
    std::string rate = cell.timed > 0 ? rate_text(cell.gbytes_per_s / static_cast<double>(cell.timed)) : "-";
    std::string why = first && range != nullptr ? why_text(group.decision(), *range) : "";
    if (first && cell.divergence)
      why += fmt::format("; {} from the checkpoint's own arithmetic", error_text(*cell.divergence));
    table.row({fmt::format("  {}", m), first ? cell.kernel : "", std::move(time), std::move(rate), std::move(error),
               std::move(why)});
  }
}

std::string stack_table(const std::vector<StackTime>& stack, size_t width) {
  using Kind = Table::Kind;
  Table table({{"batch", Kind::number},
               {"all layers", Kind::number},
               {"per token", Kind::number},
               {"share of each family", Kind::sentence}});
  for (const StackTime& time : stack) {
    std::vector<std::string> shares;
    for (const auto& [family, share] : time.share_by_family) shares.push_back(family + " " + percent_text(share));
    table.row({std::to_string(time.m), time_text(time.total_us),
               time.m > 0 ? time_text(time.total_us / static_cast<double>(time.m)) : "-", join(shares, ", ")});
  }
  return table.empty() ? "" : "\n" + table.render(width);
}

std::string proofs_text(const ProofCounts& proofs) {
  std::vector<std::string> reasons;
  for (const auto& [why, count] : proofs.why) reasons.push_back(fmt::format("{}: {}", why, count));
  return fmt::format("{} remembered, {} made{}", proofs.remembered, proofs.made,
                     reasons.empty() ? "" : " (" + join(reasons, "; ") + ")");
}

}  // namespace

std::string run_text(const RunReport& report, size_t width) {
  const Plan& plan = report.plan;
  const std::vector<LayerGroup> groups = group_layers(plan);
  std::unordered_map<std::string_view, size_t> group_of;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const LayerPlan* row : groups[i].layers) group_of.emplace(row->layer.name, i);
  }
  std::vector<Cells> cells(groups.size());
  size_t failed = 0;
  for (const Measurement& m : report.rows) {
    failed += m.comparison.ok ? 0 : 1;
    if (const auto found = group_of.find(m.layer); found != group_of.end()) add(cells[found->second][m.m], m);
  }

  using Kind = Table::Kind;
  Table table({{"batch", Kind::word},
               {"kernel", Kind::name},
               {"time", Kind::number},
               {"GB/s", Kind::number},
               {"error", Kind::number},
               {"why", Kind::sentence}});
  std::set<std::string_view> measured;
  uint64_t bytes = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (cells[i].empty()) continue;
    add_rows(table, groups[i], cells[i]);
    bytes += groups[i].weight_bytes;
  }
  std::vector<std::string> infinite;
  for (const Measurement& m : report.rows) {
    measured.insert(m.layer);
    if (m.comparison.infinite > 0)
      infinite.push_back(fmt::format("{}, batch {}: {} of the outputs looked at", m.layer, m.m, m.comparison.infinite));
  }

  std::string out = plan_heading(plan, width) + "\n" + table.render(width);
  out += wrapped_paragraph(
      "",
      "time and GB/s: mean over the layers of a group of each layer's median; error: the largest, relative to a "
      "float64 reference of the same arithmetic",
      width);
  out += stack_table(report.stack, width);
  out += "\n" + wrapped_paragraph("totals  ",
                                  fmt::format("{} run, weights {}; {} of {} checks against the reference passed",
                                              count_text(static_cast<int64_t>(measured.size()), "row", "rows"),
                                              format_bytes(bytes), report.rows.size() - failed, report.rows.size()),
                                  width);
  out += wrapped_paragraph("proofs  ", proofs_text(report.proofs), width);
  if (!report.output.empty()) out += wrapped_paragraph("output  ", printable(report.output), width);
  out += list_text("infinite outputs, as in the reference: the results leave the range of the output's type", infinite,
                   width);
  return out + list_text("not run", report.not_run, width) + quarantined_text(report.quarantined, width) +
         warnings_text(plan.warnings, width);
}

}  // namespace gearshift
