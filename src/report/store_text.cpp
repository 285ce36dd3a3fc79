#include <fmt/format.h>

#include "base/text.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/text_parts.h"
#include "report/texts.h"

namespace gearshift {

namespace {

std::string value_text(const StoreEntry& row) {
  if (row.kind == EntryKind::measurement)
    return fmt::format("{} ({} samples, {})", time_text(row.median_us), row.samples, row.mode);
  return row.kind == EntryKind::proof ? "right, worst row " + error_text(row.worst_row) : row.reason;
}

std::string what_happened(const StoreReport& report) {
  const std::string rows = count_text(report.changed, "row", "rows");
  if (report.action == "export") return rows + " written";
  if (report.action == "prune") return rows + " removed";
  return rows + " taken in";
}

}  // namespace

std::string store_text(const StoreReport& report, size_t width) {
  using Kind = Table::Kind;
  std::string out = wrapped_paragraph("store   ", printable(report.path), width);
  if (!report.rows.empty()) {
    Table table({{"kind", Kind::word},
                 {"kernel", Kind::name},
                 {"layer class", Kind::name},
                 {"batch", Kind::number},
                 {"device", Kind::name},
                 {"what", Kind::sentence}});
    for (const StoreEntry& row : report.rows)
      table.row({std::string(name(row.kind)), row.kernel, row.layer_class, range_text(row.m_min, row.m_max),
                 row.environment.device, value_text(row)});
    out += "\n" + table.render(width);
  }
  const bool counted = report.action != "export" && report.action != "prune";
  if (report.action != "list" && report.action != "verify")
    out += wrapped_paragraph("done    ", what_happened(report), width);
  if (counted) {
    out += wrapped_paragraph(
        "rows    ",
        fmt::format("{}, {} of them for this machine{}", report.check.rows, report.check.applying,
                    report.check.bad_rows == 0 ? "" : fmt::format("; {} unreadable", report.check.bad_rows)),
        width);
  }
  return out + list_text("kept for other environments", report.check.elsewhere, width) +
         list_text("problems", report.check.problems, width);
}

}  // namespace gearshift
