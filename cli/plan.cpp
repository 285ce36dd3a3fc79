#include "output.h"
#include "report/documents.h"
#include "report/pages.h"
#include "report/texts.h"

namespace gearshift::cli {

int plan(const Call& call) {
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
