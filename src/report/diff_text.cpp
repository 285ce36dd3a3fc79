#include <fmt/format.h>

#include "base/text.h"
#include "report/layer_groups.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/texts.h"

namespace gearshift {

namespace {

std::string side(std::string_view heading, const PlanRecord& plan, size_t width) {
  return wrapped_paragraph(heading,
                           fmt::format("{}: {} on {} ({}), plan {}", printable(plan.subject), printable(plan.model),
                                       printable(plan.device), printable(plan.arch), printable(plan.hash)),
                           width);
}

std::string who(const PlanDifference& difference) {
  const auto rows = static_cast<int64_t>(difference.layers.size());
  return fmt::format("{}: {} of {}, {}",
                     rows == 1 ? difference.layers.front() : role_pattern(difference.layers.front()),
                     count_text(rows, "row", "rows"), shape_text(difference.n, difference.k), difference.scheme);
}

}  // namespace

std::string diff_text(const PlanRecord& before, const PlanRecord& after, const PlanComparison& comparison,
                      size_t width) {
  using Kind = Table::Kind;
  std::string out = side("before  ", before, width) + side("after   ", after, width);
  Table table({{"what", Kind::word}, {"before", Kind::sentence}, {"after", Kind::sentence}});
  std::string shown;
  for (const PlanDifference& difference : comparison.differences) {
    const std::string heading = who(difference);
    if (heading != shown) table.section(heading);
    shown = heading;
    const auto value = [](const std::string& text) { return text.empty() ? std::string("not in this plan") : text; };
    table.row({"  " + difference.field, value(difference.before), value(difference.after)});
  }
  if (!table.empty()) out += "\n" + table.render(width);
  const auto count = static_cast<int64_t>(comparison.differences.size());
  return out + "\n" +
         wrapped_paragraph("totals  ",
                           fmt::format("{}; {}", count_text(count, "difference", "differences"),
                                       count_text(comparison.same, "row is the same", "rows are the same")),
                           width);
}

}  // namespace gearshift
