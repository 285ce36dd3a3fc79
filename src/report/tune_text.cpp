#include <fmt/format.h>

#include <algorithm>

#include "report/layer_groups.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/text_parts.h"
#include "report/texts.h"

namespace gearshift {

namespace {

// Rows of one layer and batch size stand together, the fastest first.
std::vector<const TunedRow*> ordered(const std::vector<TunedRow>& rows) {
  std::vector<const TunedRow*> order;
  for (const TunedRow& row : rows) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(), [](const TunedRow* a, const TunedRow* b) {
    const Measurement &x = a->measurement, &y = b->measurement;
    if (x.layer != y.layer || x.m != y.m) return false;
    return x.timing->median_us < y.timing->median_us;
  });
  return order;
}

std::string remark(const TunedRow& row) {
  const Measurement& own = row.measurement;
  if (own.kernel != row.chosen || own.tactic != row.chosen_tactic) return "";
  return row.chosen == row.previous ? "chosen" : "chosen, instead of " + row.previous;
}

}  // namespace

std::string tune_text(const TuneReport& report, size_t width) {
  using Kind = Table::Kind;
  Table table({{"batch", Kind::number},
               {"kernel", Kind::name},
               {"time", Kind::number},
               {"spread", Kind::word},
               {"samples", Kind::number},
               {"", Kind::sentence}});
  std::string layer;
  for (const TunedRow* row : ordered(report.rows)) {
    const Measurement& m = row->measurement;
    if (m.layer != layer) table.section(fmt::format("{}  {}  {}", m.layer, m.scheme, shape_text(m.n, m.k)));
    layer = m.layer;
    table.row({std::to_string(m.m), m.tactic.empty() ? m.kernel : fmt::format("{} ({})", m.kernel, m.tactic),
               time_text(m.timing->median_us),
               fmt::format("{} - {}", time_text(m.timing->p10_us), time_text(m.timing->p90_us)),
               std::to_string(m.timing->samples), remark(*row)});
  }
  Table gains({{"batch", Kind::number},
               {"by the lists", Kind::number},
               {"as chosen", Kind::number},
               {"gain", Kind::number},
               {"over the best", Kind::number}});
  for (const TunedBatch& batch : report.batch) {
    gains.row({std::to_string(batch.m), time_text(batch.static_us), time_text(batch.chosen_us),
               fmt::format("{:.2f}x", batch.static_us / batch.chosen_us),
               fmt::format("{:+.1f} %", (batch.chosen_us / batch.best_us - 1) * 100)});
  }
  std::string out = plan_heading(report.plan, width) + "\n";
  if (!table.empty()) out += table.render(width);
  if (!gains.empty()) out += "\n" + gains.render(width);
  std::string totals = fmt::format("{} of {} layer groups tunable; {} races run, {} found in the store", report.tunable,
                                   report.groups, report.measured, report.reused);
  if (report.oracle_gap)
    totals += fmt::format("; the plan takes {:.3f} times the best measured kernels", *report.oracle_gap);
  if (report.ranks > 1) totals += fmt::format("; rank {} of {}, one plan on all", report.rank, report.ranks);
  out += "\n" + wrapped_paragraph("totals  ", totals, width);
  out += wrapped_paragraph("plan    ", report.plan.hash, width);
  const bool memory = std::any_of(report.not_measured.begin(), report.not_measured.end(),
                                  [](const std::string& line) { return line.find(": memory: ") != std::string::npos; });
  out += list_text("not measured", report.not_measured, width);
  if (memory) out += wrapped_paragraph("", "raise --memory-limit, or tune before memory is taken", width);
  return out + quarantined_text(report.quarantined, width) + warnings_text(report.plan.warnings, width);
}

}  // namespace gearshift
