// The streaming decode kernels: one for each format of the rows16 layouts, up to 16 tokens. The engine behind their
// contracts.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// A kernel on `layout` (of the rows16 family). The caller adds families and formats.
Kernel make_cuda_stream(std::string_view name, ActivationUse use, const Layout& layout);

}  // namespace gearshift
