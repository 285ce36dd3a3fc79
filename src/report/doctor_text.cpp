#include "base/text.h"
#include "report/table.h"
#include "report/text_parts.h"
#include "report/texts.h"

namespace gearshift {

namespace {

std::string pairs_text(std::string_view heading, const std::vector<std::pair<std::string, std::string>>& pairs,
                       size_t width) {
  std::vector<std::string> items;
  for (const auto& [key, value] : pairs) items.push_back(key + ": " + value);
  return list_text(heading, items, width);
}

}  // namespace

std::string doctor_text(const DoctorReport& report, size_t width) {
  std::string out = wrapped_paragraph("device  ", printable(device_text(report.device)), width);
  if (report.device.memory_bytes > 0)
    out += wrapped_paragraph("memory  ", format_bytes(report.device.memory_bytes), width);
  out += wrapped_paragraph("driver  ", report.driver.empty() ? "none" : printable(report.driver), width);
  out += wrapped_paragraph("store   ", report.store.empty() ? "none" : printable(report.store), width);
  out += pairs_text("build", report.build, width) + pairs_text("libraries", report.libraries, width);

  Table targets({{"kernel", Table::Kind::name}, {"code for", Table::Kind::word}});
  for (const auto& [kernel, code] : report.kernel_targets) targets.row({kernel, code});
  if (!targets.empty()) out += "\n" + targets.render(width);

  Table tests({{"launch test", Table::Kind::name}, {"result", Table::Kind::word}, {"note", Table::Kind::sentence}});
  for (const LaunchTest& test : report.launch_tests) tests.row({test.kernel, test.ok ? "ok" : "FAIL", test.note});
  if (!tests.empty()) out += "\n" + tests.render(width);

  Table options({{"option", Table::Kind::word}, {"value", Table::Kind::sentence}, {"from", Table::Kind::word}});
  for (const auto& [option, setting] : report.options) options.row({option, join(setting.values, " "), setting.source});
  if (!options.empty()) out += "\n" + options.render(width);
  return out;
}

}  // namespace gearshift
