#include "report/documents.h"
#include "report/json_parts.h"

namespace gearshift {

std::string doctor_json(const DoctorReport& report) {
  using Line = JsonWriter::Line;
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.doctor/1").key("device");
  write_device(json, report.device);
  json.member_or_null("driver", report.driver).key("libraries").begin_object();
  for (const auto& [library, version] : report.libraries) json.member(library, version);
  json.end().key("build").begin_object();
  for (const auto& [key, value] : report.build) json.member(key, value);
  json.key("kernels").begin_object();
  for (const auto& [kernel, targets] : report.kernel_targets) json.member(kernel, targets);
  json.end();
  json.end().member_or_null("store", report.store).key("launch_tests").begin_array();
  for (const LaunchTest& test : report.launch_tests) {
    json.begin_object(Line::single).member("kernel", test.kernel).member("ok", test.ok);
    json.member_or_null("note", test.note).end();
  }
  json.end().key("options").begin_object();
  for (const auto& [option, setting] : report.options) {
    json.key(option).begin_object(Line::single).list("value", setting.values).member("source", setting.source).end();
  }
  json.end().end();
  return json.take();
}

}  // namespace gearshift
