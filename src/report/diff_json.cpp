#include "report/documents.h"
#include "report/json_writer.h"

namespace gearshift {

namespace {

void write_side(JsonWriter& json, std::string_view key, const PlanRecord& plan) {
  json.key(key).begin_object(JsonWriter::Line::single).member("plan", plan.subject).member("hash", plan.hash);
  json.member("model", plan.model).member("device", plan.device).member("arch", plan.arch).end();
}

}  // namespace

std::string diff_json(const PlanRecord& before, const PlanRecord& after, const PlanComparison& comparison) {
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.diff/1");
  write_side(json, "before", before);
  write_side(json, "after", after);
  json.key("differences").begin_array();
  for (const PlanDifference& difference : comparison.differences) {
    json.begin_object().list("layers", difference.layers).member("n", difference.n).member("k", difference.k);
    json.member("scheme", difference.scheme).member("field", difference.field);
    json.member_or_null("before", difference.before).member_or_null("after", difference.after).end();
  }
  json.end().member("same", comparison.same).end();
  return json.take();
}

}  // namespace gearshift
