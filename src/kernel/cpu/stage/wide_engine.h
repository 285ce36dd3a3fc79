// Kernels over layout wide_rows16: the caller names families and what its contract restricts, the engine does the rest.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// Any number of rows: codes are decoded as they are read, blocks of them stay in cache for all rows of x.
// `tiles`: by tiles of AMX where the processor has them; a kernel keeps to one way for all rows, whose bits differ.
Kernel make_wide(std::string_view name, bool tiles = true);

}  // namespace gearshift
