#include "output.h"
#include "report/documents.h"
#include "report/pages.h"
#include "report/texts.h"

namespace gearshift::cli {

namespace {

// Ranks of one group on unlike devices: --device A,B.
bool asks_for_a_group(const Call& call) {
  const auto device = call.options.find("device");
  return device != call.options.end() && device->second.values.size() == 1 &&
         device->second.values.front().find(',') != std::string::npos;
}

int plan_group(const Call& call) {
  for (const char* option : {"explain", "html"}) {
    if (call.options.count(option) != 0)
      return fail({ErrorCode::usage, "--" + std::string(option), "several devices", "one --device", "", {}});
  }
  const Result<GroupPlan> group = plan_group_model(call.model, call.options);
  if (!group.ok()) return fail(group.error());
  for (const Plan& plan : group->plans) note_policy(call, plan);
  return print_result(
      call, [&] { return group_json(*group); }, [&](size_t width) { return group_text(*group, width); });
}

}  // namespace

int plan(const Call& call) {
  if (asks_for_a_group(call)) return plan_group(call);
  const Result<Plan> result = plan_model(call.model, call.options);
  if (!result.ok()) return fail(result.error());
  note_policy(call, *result);
  const auto text = [&](size_t width) { return plan_text(*result, width); };
  const auto json = [&] { return plan_json(*result); };
  const auto html = [&] { return plan_html(*result); };
  const auto explained = call.options.find("explain");
  if (explained == call.options.end()) return print_result(call, json, text, 0, html);

  const std::string name = explained->second.values.back();
  if (const auto found = explain_text(*result, name, 100); !found.ok()) return fail(found.error());
  return print_result(
      call, json, [&](size_t width) { return *explain_text(*result, name, width); }, 0, html);
}

}  // namespace gearshift::cli
