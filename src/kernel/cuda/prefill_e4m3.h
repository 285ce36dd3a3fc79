// The prefill kernels of four-bit weights and FP8 tokens: products of e4m3 numbers, on layouts of their own. The engine
// behind their contracts.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// A kernel on `layout` (mxfp4_rows16_e4m3 or int4_rows16_e4m3). The caller adds families and formats.
Kernel make_cuda_prefill_e4m3(std::string_view name, const Layout& layout);

}  // namespace gearshift
