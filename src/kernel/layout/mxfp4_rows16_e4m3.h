// MXFP4 as e4m3 numbers: units of rows16_e4m3.h.
//
//   codes: the three bits of magnitude of number i at 4 i; signs of 0 .. 3 at bits 7, 15, 23, 31, of 4 .. 7 at 3, 11,
//   19, 27 scales: [row r of 8][row r, row r + 8][group of 32 columns, 4] bytes: pass << 4 | shift
// A block whose exponent lies 12 pass + 11 - shift below the row's largest, shift 0 .. 11, holds the weights
//   code * 2^(shift - 5) * 2^(-12 pass) * 2^(largest - 133)
// whose first product is a normal e4m3 number or zero: nothing is rounded. Rows whose exponents lie within 12 binades,
// as those of checkpoints do, need one pass over their columns; the last factor is the record's. Sixteen passes reach
// 192 binades; blocks further below the largest of their row count as if they were there.
//   passes after the records: uint32, the largest pass of a block that is not all zeros; padded to 64 bytes
// unpack() gives codes, and scales in checkpoint order.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Layout mxfp4_rows16_e4m3;

// Where the number of passes lies.
int64_t mxfp4_e4m3_passes_at(const LayerSpec& layer);

}  // namespace gearshift
