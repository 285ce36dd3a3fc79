// MXFP4 for tensor cores: units of rows16.h, 1088 bytes: codes as in e2m1_word.h, then 64 bytes of scales.
//
//   scales: [row r of 8][half of 64 columns] of four bytes: row r groups 0, 1, row r + 8 groups 0, 1
// A scale byte is the exponent field of a bf16: e8m0 code - largest code of the row + 254, at least 0. Times a code's
// 2^-126 the product is code * 2^(e8m0 - largest + 1), exact for 130 binades below the row's largest scale; what is
// smaller still cannot be seen beside it. The record's factor takes the rest, 2^(largest - 128).
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Layout mxfp4_rows16_mma;

inline constexpr int64_t kMxfp4UnitBytes = 1024 + 64;

}  // namespace gearshift
