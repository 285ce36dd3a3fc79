#include "base/text.h"
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

Result<GroupPlan> plan_group_model(const std::string& model, const Options& options) {
  const auto named = options.find("device");
  if (named == options.end())
    return ErrorInfo{ErrorCode::usage, "--device", "none", "one for each kind of rank", "", {}};
  std::vector<DeviceProfile> devices;
  Store wrong_somewhere;
  std::optional<Session> first;
  for (const std::string& device : split(named->second.values.back(), ',')) {
    Options one = options;
    one["device"].values = {device};
    GEARSHIFT_TRY(Session session, Session::open(model, one));
    devices.push_back(session.device());
    wrong_somewhere.quarantines.insert(wrong_somewhere.quarantines.end(), session.store.quarantines.begin(),
                                       session.store.quarantines.end());
    if (!first) first.emplace(std::move(session));
  }
  return first->plan_group(devices, wrong_somewhere);
}

}  // namespace gearshift
