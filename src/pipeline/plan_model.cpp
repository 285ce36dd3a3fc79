#include "base/try.h"
#include "gearshift/pipeline.h"
#include "pipeline/tp_degrees.h"

namespace gearshift {

Result<Plan> plan_model(const std::string& model, const Options& options) {
  GEARSHIFT_TRY(const Session session, Session::open(model, options));
  GEARSHIFT_TRY(Plan plan, session.plan(session.registry()));
  if (session.settings().tp_auto) {
    GEARSHIFT_TRY(plan.tp, tp_degrees(session));
  }
  return plan;
}

}  // namespace gearshift
