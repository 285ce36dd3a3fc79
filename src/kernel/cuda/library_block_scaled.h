// The engine of kernels that quantize x to codes with a scale per 16 or 32 columns and let cuBLASLt multiply such codes
// by such codes, at the full rate of tensor cores that know them (sm_100 on).
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// A kernel on scaled_tiles for NVFP4 (e2m1, e4m3 per 16) or MXFP8 (e4m3, e8m0 per 32). The caller adds families.
Kernel make_cuda_block_scaled(std::string_view name, Format format);

}  // namespace gearshift
