#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "report/layer_groups.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/text_parts.h"
#include "report/texts.h"

namespace gearshift {

namespace {

std::string arithmetic_text(const Decision& decision, const PlannedRange& range) {
  return fmt::format("{} x {}", decision.weight_arithmetic, range.activation);
}

std::string group_table(const std::vector<LayerGroup>& groups, size_t width) {
  using Kind = Table::Kind;
  Table table({{"batch", Kind::word}, {"kernel", Kind::name}, {"arithmetic", Kind::word}, {"source", Kind::word}});
  for (const LayerGroup& group : groups) {
    table.section(group_title(group));
    for (const PlannedRange& range : group.decision().ranges) {
      table.row({"  " + range_text(range.m_min, range.m_max), std::string(range.kernel->name),
                 arithmetic_text(group.decision(), range), std::string(range.source)});
    }
    if (const auto& fallback = group.decision().fallback) {
      table.section("  " + fallback->requested + " was asked for: " + fallback->reason);
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
    for (const PlannedRange& range : group.decision().ranges) {
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

}  // namespace

std::string plan_text(const Plan& plan, size_t width) {
  const std::vector<LayerGroup> groups = group_layers(plan);
  std::string out = plan_heading(plan, width) + "\n" + group_table(groups, width) + "\n" + totals(groups, width);
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
