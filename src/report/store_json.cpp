#include "report/documents.h"
#include "report/json_parts.h"

namespace gearshift {

namespace {

void write_entry(JsonWriter& json, const StoreEntry& row) {
  const RunEnvironment& environment = row.environment;
  json.begin_object(JsonWriter::Line::single).member("kind", name(row.kind)).member("kernel", row.kernel);
  json.member("kernel_version", row.kernel_version)
      .member_or_null("tactic", row.tactic)
      .member_or_null("layout", row.layout);
  json.member("device", environment.device).member("arch", environment.arch).member("cores", environment.cores);
  json.member("memory_bytes", environment.memory_bytes).member_or_null("limits", environment.limits);
  json.member_or_null("driver", environment.driver).member_or_null("runtime", environment.runtime);
  json.member_or_null("libraries", environment.libraries)
      .member("layer_class", row.layer_class)
      .member("dtype", row.dtype);
  json.member_or_null("mode", row.mode).member("threads", row.threads).member("m_min", row.m_min);
  write_bound(json, "m_max", row.m_max);
  if (row.kind == EntryKind::measurement) {
    json.member("median_us", rounded(row.median_us, 3)).member("p10_us", rounded(row.p10_us, 3));
    json.member("p90_us", rounded(row.p90_us, 3)).member("error_us", rounded(row.error_us, 3));
    json.member("samples", row.samples);
  }
  if (row.kind == EntryKind::proof) json.member("worst_row", row.worst_row).member("tolerance", row.tolerance);
  if (row.kind == EntryKind::quarantine) json.member("reason", row.reason);
  json.member_or_null("evidence", row.evidence).member("taken", row.taken).end();
}

}  // namespace

std::string store_json(const StoreReport& report) {
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.store/1").member("path", report.path).member("action", report.action);
  json.key("rows").begin_array();
  for (const StoreEntry& row : report.rows) write_entry(json, row);
  json.end().member("total", report.check.rows).member("applying", report.check.applying);
  json.member("bad_rows", report.check.bad_rows).list("elsewhere", report.check.elsewhere);
  json.list("problems", report.check.problems).member("changed", report.changed).end();
  return json.take();
}

}  // namespace gearshift
