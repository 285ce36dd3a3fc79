#include "report/documents.h"
#include "report/json_parts.h"

namespace gearshift {

std::string run_json(const RunReport& report) {
  using Line = JsonWriter::Line;
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.run/1").key("device");
  write_device(json, report.plan.device);
  json.key("build");
  write_build(json);
  json.member("plan_hash", report.plan.hash).member("model", report.plan.model_path).key("rows");
  write_measurements(json, report.rows);
  json.key("stack").begin_array();
  for (const StackTime& time : report.stack) {
    json.begin_object(Line::single).member("m", time.m).member("total_us", rounded(time.total_us, 3));
    json.key("share").begin_object();
    for (const auto& [family, share] : time.share_by_family) json.member(family, rounded(share, 6));
    json.end().end();
  }
  json.end().key("quarantined");
  write_quarantined(json, report.quarantined);
  json.key("warnings");
  write_warnings(json, report.plan.warnings);
  json.list("not_run", report.not_run).member_or_null("output", report.output).end();
  return json.take();
}

}  // namespace gearshift
