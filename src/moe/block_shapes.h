// What makes two prepared layers the projections of one expert block, wherever they run.
#pragma once

#include "gearshift/moe.h"

namespace gearshift {

// Error usage: numbers of experts or shapes that do not fit, no experts, a function that is not known.
Result<void> check_block_shapes(const PreparedLayer& first, const PreparedLayer& second,
                                const ExpertFunction& function);

}  // namespace gearshift
