#include "report/documents.h"
#include "report/json_parts.h"

namespace gearshift {

std::string verify_json(const VerifyReport& report) {
  JsonWriter json;
  begin_document(json, "gearshift.verify/1", report.plan);
  json.member("model", report.plan.model_path).key("rows");
  write_measurements(json, report.rows);
  json.key("quarantined");
  write_quarantined(json, report.quarantined);
  json.key("warnings");
  write_warnings(json, report.plan.warnings);
  json.end();
  return json.take();
}

}  // namespace gearshift
