#include "base/text.h"
#include "report/documents.h"
#include "report/json_writer.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/texts.h"

namespace gearshift {

std::string lint_json(const Registry& registry, const std::vector<LintFinding>& findings) {
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.lint/1").member("registry", registry.name);
  json.key("findings").begin_array();
  for (const LintFinding& finding : findings) {
    json.begin_object(JsonWriter::Line::single).member("rule", finding.rule);
    json.member_or_null("platform", finding.platform).member_or_null("family", finding.family);
    json.member_or_null("kind", finding.kind).member_or_null("kernel", finding.kernel);
    json.member("text", finding.text).end();
  }
  json.end().end();
  return json.take();
}

std::string lint_text(const Registry& registry, const std::vector<LintFinding>& findings, size_t width) {
  using Kind = Table::Kind;
  Table table({{"rule", Kind::word}, {"kernel", Kind::name}, {"what it does", Kind::sentence}});
  std::string shown;
  for (const LintFinding& finding : findings) {
    std::string where = finding.platform.empty()
                            ? "rules"
                            : finding.platform + ", " + finding.family + (finding.kind == "experts" ? ", experts" : "");
    if (where != shown) table.section(where);
    shown = std::move(where);
    table.row({"  " + finding.rule, finding.kernel, finding.text});
  }
  const auto count = static_cast<int64_t>(findings.size());
  return (table.empty() ? "" : table.render(width) + "\n") +
         wrapped_paragraph("", "registry " + printable(registry.name) + ": " + count_text(count, "finding", "findings"),
                           width);
}

}  // namespace gearshift
