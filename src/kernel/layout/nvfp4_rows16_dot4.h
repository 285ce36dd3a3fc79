// NVFP4 weights for integer dot products: panels of 16 rows, blocks of 64 columns, 576 bytes (nine cache lines) a
// block.
//
//   packed: [part][panel = ceil(n / 16)][block = ceil(K / 64)][576]
//   block:  byte 128 g + 64 j + 4 r + c   (g < 4 groups of 16 columns, j < 2, r < 16 rows, c < 4)
//             low nibble   code of row r, column 16 g + 8 j + c
//             high nibble  code of row r, column 16 g + 8 j + c + 4
//           byte 512 + 16 g + r           e4m3 scale of row r, group g
//
// So one 64-byte load holds four columns of all 16 rows in its low nibbles and the next four in its high ones: what the
// four-way byte dot instructions want against a broadcast of four activations. A thread reads one contiguous stream.
// Rows past the end of a part and columns past K have code 0 and scale 0. Parts start on a panel of their own, so that
// a panel has one tensor-wide scale.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Layout nvfp4_rows16_dot4;

inline constexpr int64_t kDot4Rows = 16;
inline constexpr int64_t kDot4Columns = 64;
inline constexpr int64_t kDot4Group = 16;
inline constexpr int64_t kDot4GroupBytes = 128;
inline constexpr int64_t kDot4ScaleOffset = 512;
inline constexpr int64_t kDot4BlockBytes = 576;

}  // namespace gearshift
