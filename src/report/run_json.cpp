#include "report/documents.h"
#include "report/json_parts.h"

namespace gearshift {

std::string run_json(const RunReport& report) {
  JsonWriter json;
  begin_document(json, "gearshift.run/1", report.plan);
  json.member("model", report.plan.model_path).key("rows");
  write_measurements(json, report.rows);
  json.key("stack");
  write_stack(json, report.stack);
  json.key("quarantined");
  write_quarantined(json, report.quarantined);
  json.key("warnings");
  write_warnings(json, report.plan.warnings);
  json.key("proofs").begin_object(JsonWriter::Line::single).member("remembered", report.proofs.remembered);
  json.member("made", report.proofs.made).key("why").begin_object(JsonWriter::Line::single);
  for (const auto& [why, count] : report.proofs.why) json.member(why, count);
  json.end().end();
  json.list("not_run", report.not_run).member_or_null("output", report.output).end();
  return json.take();
}

}  // namespace gearshift
