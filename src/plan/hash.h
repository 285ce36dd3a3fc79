// The identity of a plan's decisions.
#pragma once

#include "gearshift/plan.h"

namespace gearshift {

// 32 hexadecimal digits (XXH3, 128 bits) of a canonical text of layers, kernels, batch ranges, layouts and policy.
// Times, paths, threads and reasons are not part of it.
std::string decision_hash(const Plan& plan);

}  // namespace gearshift
