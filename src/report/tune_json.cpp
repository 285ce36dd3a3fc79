#include "report/documents.h"
#include "report/json_parts.h"

namespace gearshift {

std::string tune_json(const TuneReport& report) {
  using Line = JsonWriter::Line;
  JsonWriter json;
  begin_document(json, "gearshift.tune/1", report.plan);
  json.member("static_plan_hash", report.static_hash);
  json.member("model", report.plan.model_path).member("mode", report.plan.policy.mode);
  json.member("rank", report.rank).member("ranks", report.ranks);
  json.member("groups", report.groups).member("tunable", report.tunable);
  json.member("measured", report.measured).member("reused", report.reused).key("oracle_gap");
  report.oracle_gap ? json.value(rounded(*report.oracle_gap, 6)) : json.null();
  json.key("rows").begin_array();
  for (const TunedRow& row : report.rows) {
    json.begin_object();
    write_measurement(json, row.measurement);
    json.member("chosen", row.chosen).member_or_null("chosen_tactic", row.chosen_tactic);
    json.member("previous", row.previous).end();
  }
  json.end().key("batch").begin_array();
  for (const TunedBatch& batch : report.batch) {
    json.begin_object(Line::single).member("m", batch.m).member("static_us", rounded(batch.static_us, 3));
    json.member("chosen_us", rounded(batch.chosen_us, 3)).member("best_us", rounded(batch.best_us, 3));
    json.member("gain", rounded(batch.chosen_us > 0 ? batch.static_us / batch.chosen_us : 1, 4));
    json.member("oracle_gap", rounded(batch.best_us > 0 ? batch.chosen_us / batch.best_us : 1, 6)).end();
  }
  json.end().list("not_measured", report.not_measured).key("quarantined");
  write_quarantined(json, report.quarantined);
  json.key("warnings");
  write_warnings(json, report.plan.warnings);
  json.end();
  return json.take();
}

}  // namespace gearshift
