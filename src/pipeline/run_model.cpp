#include "base/try.h"
#include "gearshift/pipeline.h"
#include "pipeline/runner.h"

namespace gearshift {

Result<RunReport> run_model(const std::string& model, const Options& options, const Progress& progress) {
  GEARSHIFT_TRY(Session session, Session::open(model, options));
  return Runner(session, session.registry(), progress, isolation_by_child(session)).run();
}

}  // namespace gearshift
