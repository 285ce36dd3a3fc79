// The engine of all emulation kernels: quantize x by the checkpoint's recipe, dequantise a panel of weights to fp32,
// multiply in fp32, and apply what holds for a whole row (tensor-wide, per-row and per-token scales) in float64 at the
// very end, so that nothing overflows before it. Codes enter the product exactly; a scale per group is one fp32
// rounding (none for e2m1 with e4m3 or power-of-two scales).
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// A kernel of the engine; the caller adds families and what its contract restricts.
Kernel make_emulation(std::string_view name, ActivationUse use);

}  // namespace gearshift
