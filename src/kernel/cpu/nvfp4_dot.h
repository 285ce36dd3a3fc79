// The two inner pieces of NVFP4 x NVFP4 through integer dot products, one version per instruction set.
//
// 2 * e2m1 is an integer in [-12, 12]. Sixteen products of a group sum exactly in int32 (|sum| <= 2304); the product of
// the two e4m3 scales has 8 significant bits, so its product with the sum (12 bits) is exact in fp32 too. The only
// rounding is the addition of each group to the accumulator, in order of k: every version gives the same bits.
#pragma once

#include <cstdint>

#include "gearshift/device.h"

namespace gearshift {

// One row's 16 activations, quantized.
struct DotGroup {
  int32_t codes[4];  // 2 * e2m1, one a byte, column 4i + c in byte c of codes[i]
  float scale;       // the group's e4m3 scale times 64: 1/4 for the doubled factors, 2^8 for how weight scales are read
  int32_t correction;  // -12 * sum of the codes: weights are looked up as 2 * e2m1 + 12, unsigned
};

// x[16] -> group, by the recipe of format/nvfp4.h bit for bit.
using QuantizeGroup = void (*)(const float* x, float global, DotGroup* group);

inline constexpr int64_t kDotRowsOfX = 4;
// One panel of layout nvfp4_rows16_dot4 against `rows` <= kDotRowsOfX rows of activations (x[row], blocks * 4 groups
// each): out[row][16] = sum over groups of code products * both scales.
using DotPanel = void (*)(const uint8_t* panel, int64_t blocks, const DotGroup* const* x, int64_t rows,
                          float (*out)[16]);

struct DotPieces {
  QuantizeGroup quantize;
  DotPanel panel;
};
DotPieces dot_pieces_for(Isa isa);

}  // namespace gearshift
