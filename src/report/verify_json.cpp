#include "report/documents.h"
#include "report/json_parts.h"

namespace gearshift {

std::string verify_json(const VerifyReport& report) {
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.verify/1").key("device");
  write_device(json, report.plan.device);
  json.key("build");
  write_build(json);
  json.member("plan_hash", report.plan.hash).member("model", report.plan.model_path).key("rows");
  write_measurements(json, report.rows);
  json.key("quarantined");
  write_quarantined(json, report.quarantined);
  json.key("warnings");
  write_warnings(json, report.plan.warnings);
  json.end();
  return json.take();
}

}  // namespace gearshift
