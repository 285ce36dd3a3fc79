// The ordered lists of the CPU: one per family.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

std::vector<KernelList> cpu_lists();

}  // namespace gearshift
