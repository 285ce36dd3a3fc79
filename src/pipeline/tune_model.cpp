#include <cstdlib>

#include "base/try.h"
#include "pipeline/tuner.h"

namespace gearshift {

Result<TuneReport> tune_model(const std::string& model, const Options& options, const Progress& progress) {
  GEARSHIFT_TRY(Session session, Session::open(model, options));
  GEARSHIFT_CHECK(session.require_device());
  GEARSHIFT_TRY(TuneDevice device, tune_device_of(session.device()));
  const Ranks ranks = ranks_of([](const char* variable) { return std::getenv(variable); });
  return Tuner(session, session.registry(), progress, std::move(device), isolation_by_child(session), ranks).run();
}

}  // namespace gearshift
