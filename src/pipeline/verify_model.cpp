#include "base/try.h"
#include "gearshift/pipeline.h"
#include "pipeline/verifier.h"

namespace gearshift {

Result<VerifyReport> verify_model(const std::string& model, const Options& options, const Progress& progress) {
  GEARSHIFT_TRY(Session session, Session::open(model, options));
  return Verifier(session, session.registry(), progress, isolation_by_child(session)).run();
}

}  // namespace gearshift
