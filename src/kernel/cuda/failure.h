// What a kernel does when a launch or a library call is refused: nothing can be returned, and stale numbers must not
// pass for results, so every row of y becomes NaN and the self-check says so.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift::cuda {

void failed(const RunArgs& args);

}  // namespace gearshift::cuda
