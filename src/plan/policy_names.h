// A policy whose names exist and whose values make sense.
#pragma once

#include "gearshift/plan.h"

namespace gearshift {

// Normalised: batch sizes ascending and unique, "" as "auto". Error usage: an unknown backend, kernel or --disable name
// (lists the near and the valid ones), a batch size below 1, a dtype that is not 16 or 32 bit float.
Result<Policy> checked_policy(Policy policy, const Registry& registry);

}  // namespace gearshift
