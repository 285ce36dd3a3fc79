#include <fmt/format.h>

#include "report/documents.h"
#include "report/json_parts.h"

namespace gearshift {

namespace {

void write_ceilings(JsonWriter& json, const std::vector<Ceiling>& ceilings) {
  json.key("ceilings").begin_array();
  for (const Ceiling& ceiling : ceilings) {
    json.begin_object(JsonWriter::Line::single).member("name", ceiling.name).member("unit", ceiling.unit);
    json.member("value", rounded(ceiling.value, 3)).member("p10", rounded(ceiling.p10, 3));
    json.member("p90", rounded(ceiling.p90, 3)).member("samples", ceiling.samples);
    json.member("instruction", ceiling.instruction).end();
  }
  json.end();
}

void write_row(JsonWriter& json, const BenchRow& row, bool of_model) {
  const Measurement& measurement = row.measurement;
  const bool timed = measurement.timing.has_value() && row.floor_us > 0;
  json.begin_object();
  if (of_model) {
    json.member("layer", measurement.layer).member("layers", row.layers);
  } else {
    json.member("shape", fmt::format("{},{}", measurement.n, measurement.k));
  }
  write_measured_members(json, measurement, row.refused.empty());
  json.key("floor_us");
  row.floor_us > 0 ? json.value(rounded(row.floor_us, 3)) : json.null();
  json.member_or_null("floor_by", row.floor_by).key("of_floor");
  timed ? json.value(rounded(row.floor_us / measurement.timing->median_us, 4)) : json.null();
  json.member("copies", row.copies).member("rotated_bytes", row.rotated_bytes);
  json.member_or_null("refused", row.refused).end();
}

}  // namespace

std::string bench_json(const BenchReport& report) {
  const bool of_model = !report.plan.model_path.empty();
  JsonWriter json;
  begin_document(json, "gearshift.bench/1", report.plan);
  json.member_or_null("model", report.plan.model_path);
  json.member("threads", report.threads).member("pinned", report.pinned);
  write_ceilings(json, report.ceilings);
  json.key("rows").begin_array();
  for (const BenchRow& row : report.rows) write_row(json, row, of_model);
  json.end();
  if (of_model) {
    json.key("stack");
    write_stack(json, report.stack);
  }
  json.list("notes", report.notes).key("warnings");
  write_warnings(json, report.plan.warnings);
  json.end();
  return json.take();
}

}  // namespace gearshift
