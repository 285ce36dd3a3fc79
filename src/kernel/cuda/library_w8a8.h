// The engine of kernels that quantize x to codes and let cuBLASLt multiply codes by codes.
#pragma once

#include "gearshift/kernel.h"
#include "kernel/cuda/operand.h"

namespace gearshift {

enum class CodeProduct : uint8_t {
  e4m3,        // scales of tokens and channels on the fp32 sums, or inside the product where the device can (sm_90)
  e4m3_block,  // 1 x 128 by 128 x 128 inside the product (sm_90)
  int8         // int32 sums, scales of tokens and channels on them
};

// How x has to be made for a product with code_rows.
cuda::OperandNeeds code_needs(const LayerSpec& layer, CodeProduct product);

// What sums of FP8 products may lose, as a part of the sum of their sizes: tensor cores align the products of a step to
// the largest of them and of the sum so far, and drop what lies 13 bits below it.
constexpr double kFp8SumLoss = 0x1p-9;

// A kernel on code_rows. The caller adds families and what its contract restricts.
Kernel make_cuda_code_product(std::string_view name, CodeProduct product);

}  // namespace gearshift
