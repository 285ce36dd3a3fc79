// What is assumed of an engine: a registry's defaults, changed by what the policy says.
#pragma once

#include "gearshift/plan.h"

namespace gearshift {

struct Assumed {
  Assumptions assumptions;          // without what comes from the checkpoint
  std::vector<std::string> unused;  // names that exist and that this registry does not ask about
};
// Errors usage: a package or fact that no registry knows (lists the near and the valid ones), a value of another kind.
Result<Assumed> assumed_by(const Policy& policy, const Registry& registry, const DeviceProfile& device);

}  // namespace gearshift
