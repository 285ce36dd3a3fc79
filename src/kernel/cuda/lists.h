// The ordered lists of CUDA devices: one per family.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

std::vector<KernelList> cuda_lists();

}  // namespace gearshift
