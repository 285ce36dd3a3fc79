#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/text_parts.h"
#include "report/texts.h"

namespace gearshift {

namespace {

// All batch sizes at which one kernel was tried on one layer.
struct Trial {
  const Measurement* first = nullptr;
  std::vector<std::string> sizes;
  double relative_error = 0, worst_row = 0, worst_column = 0, tolerance = 0;
  size_t failed = 0;
};

std::vector<Trial> trials_of(const std::vector<Measurement>& rows) {
  std::vector<Trial> trials;
  std::map<std::pair<std::string_view, std::string_view>, size_t> index;
  for (const Measurement& m : rows) {
    const auto [found, fresh] =
        index.emplace(std::pair<std::string_view, std::string_view>(m.layer, m.kernel), trials.size());
    if (fresh) trials.push_back({&m, {}, 0, 0, 0, 0, 0});
    Trial& trial = trials[found->second];
    trial.sizes.push_back(std::to_string(m.m));
    trial.relative_error = std::max(trial.relative_error, m.comparison.relative_error);
    trial.worst_row = std::max(trial.worst_row, m.comparison.worst_row);
    trial.worst_column = std::max(trial.worst_column, m.comparison.worst_column);
    trial.tolerance = std::max(trial.tolerance, m.comparison.tolerance);
    trial.failed += m.comparison.ok ? 0 : 1;
  }
  return trials;
}

}  // namespace

std::string verify_text(const VerifyReport& report, size_t width) {
  using Kind = Table::Kind;
  Table table({{"layer", Kind::name},
               {"kernel", Kind::name},
               {"error", Kind::number},
               {"worst row", Kind::number},
               {"column", Kind::number},
               {"result", Kind::word},
               {"batch sizes", Kind::sentence}});
  std::vector<std::string> failures;
  for (const Trial& trial : trials_of(report.rows)) {
    table.row({trial.first->layer, trial.first->kernel, error_text(trial.relative_error), error_text(trial.worst_row),
               error_text(trial.worst_column), trial.failed == 0 ? "ok" : "FAIL", join(trial.sizes, ", ")});
  }
  for (const Measurement& m : report.rows) {
    if (!m.comparison.ok)
      failures.push_back(fmt::format("{} on {}, batch {}: {}", m.kernel, m.layer, m.m, m.comparison.failure));
  }
  std::string out = plan_heading(report.plan, width) + "\n" + table.render(width) + "\n";
  out += wrapped_paragraph("totals  ",
                           fmt::format("{} of {} checks against the reference passed",
                                       report.rows.size() - failures.size(), report.rows.size()),
                           width);
  return out + list_text("failures", failures, width) + quarantined_text(report.quarantined, width) +
         warnings_text(report.plan.warnings, width);
}

}  // namespace gearshift
