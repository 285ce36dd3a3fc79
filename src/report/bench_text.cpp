#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/text_parts.h"
#include "report/texts.h"

namespace gearshift {

namespace {

std::string ceilings_table(const std::vector<Ceiling>& ceilings, size_t width) {
  using Kind = Table::Kind;
  Table table({{"ceiling", Kind::word},
               {"median", Kind::number},
               {"p10", Kind::number},
               {"p90", Kind::number},
               {"", Kind::word},
               {"measured with", Kind::sentence}});
  for (const Ceiling& ceiling : ceilings) {
    table.row({ceiling.name, rate_text(ceiling.value), rate_text(ceiling.p10), rate_text(ceiling.p90), ceiling.unit,
               ceiling.instruction});
  }
  return table.render(width);
}

// What rows of one layer and scheme have in common.
std::string title_of(const BenchRow& row) {
  const Measurement& m = row.measurement;
  std::string text =
      fmt::format("{} {} ({}), {}", shape_text(m.n, m.k), m.family, m.scheme, format_bytes(m.weight_bytes));
  if (!m.layer.empty())
    text = fmt::format("{} and alike: {}, {}", m.layer, count_text(row.layers, "layer", "layers"), text);
  return text;
}

std::string stack_lines(const BenchReport& report, size_t width) {
  std::string out;
  for (const StackTime& time : report.stack) {
    std::vector<std::string> shares;
    for (const auto& [family, share] : time.share_by_family) shares.push_back(family + " " + percent_text(share));
    out += wrapped_paragraph(fmt::format("  batch {}: ", time.m),
                             fmt::format("{} ({})", time_text(time.total_us), join(shares, ", ")), width);
  }
  return out.empty() ? "" : "\nall layers together\n" + out;
}

}  // namespace

std::string bench_text(const BenchReport& report, size_t width) {
  using Kind = Table::Kind;
  Table table({{"batch", Kind::word},
               {"kernel", Kind::name},
               {"time", Kind::number},
               {"p10", Kind::number},
               {"p90", Kind::number},
               {"GB/s", Kind::number},
               {"Tflop/s", Kind::number},
               {"of floor", Kind::number},
               {"error", Kind::number}});
  std::string title;
  std::vector<std::string> refusals, failures;
  uint64_t least_rotated = 0;
  for (const BenchRow& row : report.rows) {
    const Measurement& m = row.measurement;
    if (const std::string own = title_of(row); own != title) table.section(title = own);
    const std::string batch = fmt::format("  {}", m.m);
    if (!row.refused.empty()) {
      table.row({batch, "refused", "-", "-", "-", "-", "-", "-", "-"});
      refusals.push_back(fmt::format("{}, batch {}{}: refused: {}", title, m.m,
                                     m.kernel.empty() && m.backend.empty() ? "" : ", " + m.kernel + m.backend,
                                     row.refused));
      continue;
    }
    least_rotated = least_rotated == 0 ? row.rotated_bytes : std::min(least_rotated, row.rotated_bytes);
    if (!m.comparison.ok)
      failures.push_back(fmt::format("{} on {}, batch {}: {}", m.kernel, title, m.m, m.comparison.failure));
    if (!m.timing) {
      table.row({batch, m.kernel, "-", "-", "-", "-", "-", "-", error_text(m.comparison.relative_error) + " FAIL"});
      continue;
    }
    const std::string ratio =
        row.floor_us > 0 ? fmt::format("{} {}", row.floor_by, percent_text(row.floor_us / m.timing->median_us)) : "-";
    // Rows of expert blocks differ in how they were run.
    const std::string kernel = m.tactic.empty() ? m.kernel : fmt::format("{}; {}", m.kernel, m.tactic);
    table.row({batch, kernel, time_text(m.timing->median_us), time_text(m.timing->p10_us), time_text(m.timing->p90_us),
               rate_text(m.gbytes_per_s), rate_text(m.tflops), ratio, error_text(m.comparison.relative_error)});
  }

  std::string out;
  if (!report.plan.model_path.empty()) out += wrapped_paragraph("model   ", printable(report.plan.model_path), width);
  out += wrapped_paragraph("device  ", device_text(report.plan.device), width);
  out +=
      wrapped_paragraph("threads ",
                        fmt::format("{}, {}; plan {}", report.threads,
                                    report.pinned ? "each on a core of its own" : "not bound to cores: there are fewer",
                                    report.plan.hash),
                        width);
  out += "\n" + ceilings_table(report.ceilings, width) + "\n" + table.render(width);
  out += wrapped_paragraph(
      "",
      fmt::format(
          "of floor: the least time that the named ceiling leaves (stored weights read once, or all operations at "
          "its peak) over the median; weights are read in turn from copies of {} or more; error: relative to a "
          "float64 reference of the same arithmetic",
          format_bytes(least_rotated)),
      width);
  return out + stack_lines(report, width) + list_text("refused, so not timed", refusals, width) +
         list_text("failures: wrong numbers are not timed", failures, width) + list_text("notes", report.notes, width) +
         warnings_text(report.plan.warnings, width);
}

}  // namespace gearshift
