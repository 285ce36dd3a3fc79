// Which tensor-parallel degrees a model divides by.
#pragma once

#include "pipeline/session.h"

namespace gearshift {

// 1, 2, 4 ... 64, each with the number in its way where some row needs a rescue or is not served. Errors: usage.
Result<std::vector<TpDegree>> tp_degrees(const Session& session);

}  // namespace gearshift
