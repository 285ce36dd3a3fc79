// The plans of ranks on unlike devices, one after the other, and what they have in common.
#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "report/documents.h"
#include "report/json_writer.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/texts.h"

namespace gearshift {
namespace {

// Rows by what enters their product, the same on every device.
std::map<std::string, int64_t> rows_by_activation(const GroupPlan& group) {
  std::map<std::string, int64_t> rows;
  for (const std::string& activation : group.activations) ++rows[activation];
  return rows;
}

}  // namespace

std::string group_text(const GroupPlan& group, size_t width) {
  std::vector<std::string> words;
  for (const auto& [activation, rows] : rows_by_activation(group))
    words.push_back(fmt::format("{} of {}", activation, count_text(rows, "row", "rows")));
  std::string out = wrapped_paragraph(
      "group   ",
      fmt::format("{}; all of them multiply the same activations: {}",
                  count_text(static_cast<int64_t>(group.plans.size()), "device", "devices"), join(words, ", ")),
      width);
  for (const Plan& plan : group.plans) out += "\n" + plan_text(plan, width);
  return out;
}

std::string group_json(const GroupPlan& group) {
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.group/1").key("activations").begin_array();
  for (const auto& [activation, rows] : rows_by_activation(group)) {
    json.begin_object(JsonWriter::Line::single).member("activation", activation).member("rows", rows).end();
  }
  json.end().key("plans").begin_array();
  constexpr size_t kDepthOfPlans = 2;
  for (const Plan& plan : group.plans) {
    std::string text = plan_json(plan, kDepthOfPlans);
    if (text.ends_with('\n')) text.pop_back();
    json.raw(text);
  }
  json.end().end();
  return json.take();
}

}  // namespace gearshift
