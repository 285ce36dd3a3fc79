#include "plan.h"

#include "base/try.h"
#include "report/documents.h"
#include "report/pages.h"
#include "report/texts.h"

namespace gearshift::c {

namespace {

Result<Model> open_model(const char* model, const gearshift_option* options, size_t count) {
  if (model == nullptr) return null_argument("model");
  GEARSHIFT_TRY(const Options all, options_of(kPlan, options, count));
  return Model::open(model, all);
}

struct Difference {
  size_t count = 0;
  std::string text;
};

Result<Difference> compare(const char* before_json, const char* after_json, gearshift_form form, size_t width) {
  if (before_json == nullptr || after_json == nullptr) return null_argument("a plan");
  GEARSHIFT_TRY(const PlanRecord before, parse_plan_record(before_json, "before"));
  GEARSHIFT_TRY(const PlanRecord after, parse_plan_record(after_json, "after"));
  const PlanComparison comparison = compare_plans(before, after);
  Forms forms;
  forms.json = [&] { return diff_json(before, after, comparison); };
  forms.text = [&](size_t columns) { return diff_text(before, after, comparison, columns); };
  GEARSHIFT_TRY(std::string text, show(forms, form, width));
  return Difference{comparison.differences.size(), std::move(text)};
}

}  // namespace

}  // namespace gearshift::c

using namespace gearshift;     // NOLINT(google-build-using-namespace): the functions below stand outside it
using namespace gearshift::c;  // NOLINT(google-build-using-namespace)

extern "C" {

gearshift_status gearshift_plan_open(const char* model, const gearshift_option* options, size_t option_count,
                                     gearshift_plan** plan) {
  if (plan == nullptr) return fail(null_argument("plan"));
  return guarded([&] { return open_model(model, options, option_count); },
                 [&](Model opened) {
                   auto handle = std::make_unique<gearshift_plan>();
                   handle->model = std::make_shared<const Model>(std::move(opened));
                   *plan = handle.release();
                 });
}

void gearshift_plan_free(gearshift_plan* plan) { delete plan; }

gearshift_status gearshift_plan_show(const gearshift_plan* plan, gearshift_form form, size_t width, char** text) {
  if (plan == nullptr || text == nullptr) return fail(null_argument("plan or text"));
  const Plan& made = plan->model->plan();
  const Forms forms = {[&] { return plan_json(made); }, [&](size_t columns) { return plan_text(made, columns); },
                       [&] { return plan_html(made); }};
  return guarded([&] { return show(forms, form, width); },
                 [&](const std::string& shown) { *text = handed_out(shown); });
}

gearshift_status gearshift_plan_explain(const gearshift_plan* plan, const char* layer, size_t width, char** text) {
  if (plan == nullptr || layer == nullptr || text == nullptr) return fail(null_argument("plan, layer or text"));
  return guarded([&] { return explain_text(plan->model->plan(), layer, width == 0 ? 100 : width); },
                 [&](const std::string& shown) { *text = handed_out(shown); });
}

const char* gearshift_plan_hash(const gearshift_plan* plan) {
  return plan == nullptr ? "" : plan->model->plan().hash.c_str();
}

gearshift_status gearshift_diff(const char* before_json, const char* after_json, gearshift_form form, size_t width,
                                size_t* differences, char** text) {
  if (text == nullptr) return fail(null_argument("text"));
  return guarded([&] { return compare(before_json, after_json, form, width); },
                 [&](const Difference& found) {
                   *text = handed_out(found.text);
                   if (differences != nullptr) *differences = found.count;
                 });
}
}
