#include "pipeline/tp_degrees.h"

#include <algorithm>

#include "base/try.h"

namespace gearshift {
namespace {

// Degrees past this one leave no layer of a published model with columns to divide.
constexpr int64_t kLargestDegree = 64;

TpDegree judged(int64_t degree, const Plan& plan) {
  TpDegree out{degree, true, 0, "", "", ""};
  for (const LayerPlan& row : plan.layers) {
    const auto& rescue = row.decision->rescue;
    if (!rescue) continue;
    if (out.ok) out = {degree, false, 0, rescue->field, rescue->found, rescue->wanted};
    ++out.layers;
  }
  return out;
}

}  // namespace

Result<std::vector<TpDegree>> tp_degrees(const Session& session) {
  std::vector<TpDegree> degrees;
  for (int64_t degree = 1; degree <= kLargestDegree; degree *= 2) {
    const Result<Plan> plan = session.plan_shards(degree);
    if (plan.ok()) {
      degrees.push_back(judged(degree, *plan));
      continue;
    }
    const ErrorInfo& error = plan.error();
    if (error.code != ErrorCode::no_kernel && error.code != ErrorCode::fallback_refused) return error;
    degrees.push_back({degree, false, static_cast<int64_t>(session.rows().size()), "", error.found, error.wanted});
  }
  return degrees;
}

}  // namespace gearshift
