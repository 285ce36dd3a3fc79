// The instruction set that CPU kernels use: one choice for the whole process, read by every kernel.
#pragma once

#include "gearshift/device.h"

namespace gearshift {

// At most this level from now on (what GEARSHIFT_MAX_ISA says); never more than the processor has. Not while kernels
// run.
void set_max_isa(Isa max);
// The level in use. The first call asks the processor.
Isa active_isa();

}  // namespace gearshift
