#include "pipeline/tp_degrees.h"

#include <tuple>

#include "base/try.h"
#include "plan/rescue.h"

namespace gearshift {
namespace {

// Degrees past this one leave no layer of a published model with columns to divide.
constexpr int64_t kLargestDegree = 64;

// The number in the way of a row; nullopt: it is served whole, as asked.
std::optional<Obstacle> in_the_way(const Decision& decision) {
  if (decision.rescue) return Obstacle{decision.rescue->field, decision.rescue->found, decision.rescue->wanted};
  if (!serves_every_batch(decision)) return obstacle_of(decision.candidates);
  return std::nullopt;
}

TpDegree judged(int64_t degree, const Plan& plan, bool strict) {
  TpDegree out{degree, true, 0, "", "", ""};
  for (const LayerPlan& row : plan.layers) {
    const std::optional<Obstacle> obstacle = in_the_way(*row.decision);
    const bool refused = strict && row.decision->fallback;
    if (!obstacle && !refused) continue;
    ++out.layers;
    if (!out.ok) continue;
    out.ok = false;
    if (obstacle)
      std::tie(out.field, out.found, out.wanted) = std::tie(obstacle->field, obstacle->found, obstacle->wanted);
  }
  return out;
}

}  // namespace

Result<std::vector<TpDegree>> tp_degrees(const Session& session) {
  std::vector<TpDegree> degrees;
  for (int64_t degree = 1; degree <= kLargestDegree; degree *= 2) {
    GEARSHIFT_TRY(const Plan plan, session.plan_shards(degree));
    degrees.push_back(judged(degree, plan, session.settings().policy.strict));
  }
  return degrees;
}

}  // namespace gearshift
