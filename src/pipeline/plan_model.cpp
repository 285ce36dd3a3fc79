#include "base/try.h"
#include "gearshift/pipeline.h"
#include "pipeline/session.h"

namespace gearshift {

Result<Plan> plan_model(const std::string& model, const Options& options) {
  GEARSHIFT_TRY(const Session session, Session::open(model, options));
  return session.plan(session.registry());
}

}  // namespace gearshift
