// Any weight, a code at a time, row by row: what the CUDA baseline reads where a scheme has no layout of its own.
//
//   codes        [N][K] of 1 byte (float weights: as stored, 2 or 4), rows padded to 16 bytes with zeros
//                float codes (e4m3 ... e2m1) as they are; integers as q - zero where weights are symmetric, else q,
//                both signed
//   factors      [N] fp32, quantized weights: what holds for the whole row, tensor-wide scales included
//   columns      [N] int32, quantized weights: the column of y that a row makes
//   scales       [N][G] fp32, where scales are per group or block; powers of two of MX as stored, a byte each, rows
//                padded to 4 bytes
//   block scales [part][blocks of rows][G rounded up to 4] fp32, blocks of 128 x 128: the same scales once each, as
//                cuBLASLt reads them
//   zero points  [N][G] int16, in the codes' own meaning; only where weights have them
//   group index  [part][K] int32, with act-order only
//   pre-scale    [part][K] fp32, where x is multiplied column-wise first
//   bias         [N] fp32, where there is one
// Sections start on 64 bytes. unpack() gives the code bytes [N,K] (wider floats: all their bytes) and the scales as
// fp32 [N,G].
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Layout code_rows;

// Where the sections of a layer begin; -1 where it has none.
struct CodeRows {
  int64_t element_bytes = 1, row_bytes = 0, groups = 1;
  bool exponents = false;  // scales are bytes of e8m0
  int64_t scale_row_bytes = 0;
  int64_t block_row_floats = 0;
  int64_t factors = -1, columns = -1, scales = -1, block_scales = -1, zeros = -1, index = -1, pre_scale = -1, bias = -1,
          bytes = 0;
};
CodeRows code_rows_of(const LayerSpec& layer);
// The first row of block scales of a part.
int64_t first_block_of(const LayerSpec& layer, size_t part);

}  // namespace gearshift
