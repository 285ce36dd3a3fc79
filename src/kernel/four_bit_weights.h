// What contracts say of four-bit weights: the kernels of one format take the same checkpoints, whatever their device
// and route. A kernel adds what it restricts further.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

void take_nvfp4_weights(Contract& contract);
void take_mxfp4_weights(Contract& contract);
void take_int4_weights(Contract& contract);

}  // namespace gearshift
