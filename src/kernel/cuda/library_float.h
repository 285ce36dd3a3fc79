// The engine of kernels that hand float weights to cuBLASLt as they lie.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// A kernel on code_rows for weights and activations of one type, bf16 or f16: nothing is converted, sums are fp32.
Kernel make_cuda_float_product(std::string_view name, DType dtype);

}  // namespace gearshift
