// The engine of all CUDA emulation kernels: quantize x by the checkpoint's recipe and write it back as floats, write a
// panel of weights as floats into the workspace, multiply both with cuBLASLt, and apply what holds for whole rows to
// the fp32 sums.
//
// Floats are bf16 where activations are bf16, and fp32 multiplied as TF32 where they are fp16, so that no activation
// loses a bit. Codes of up to 8 bits, e2m1 with e4m3 scales and power-of-two scales are exact in either; other scales
// per group are rounded into the operand, which `bound_product` allows for.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// A kernel of the engine on `layout`: code_rows or one of the rows16 family. The caller adds families and what its
// contract restricts.
Kernel make_cuda_emulation(std::string_view name, ActivationUse use, const Layout& layout);

// Every CUDA architecture that kernels of this folder are written for.
std::vector<std::string_view> cuda_archs();

// Half a unit in the last place of a bf16 operand, relative.
inline constexpr double kRoundedOperand = 0x1p-8;

}  // namespace gearshift
