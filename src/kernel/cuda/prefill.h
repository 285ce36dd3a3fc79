// The prefill kernels: one for each format of the rows16 layouts, on the same packed weights as the streaming decode
// kernels, for any number of tokens. The engine behind their contracts.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// A kernel on `layout` (of the rows16 family). The caller adds families and formats.
Kernel make_cuda_prefill(std::string_view name, ActivationUse use, const Layout& layout);

}  // namespace gearshift
