// Any weight, a code at a time, row by row: what the CUDA baseline reads where a scheme has no layout of its own.
//
//   codes        [N][K] of 1 byte (float weights: as stored, 2 or 4), rows padded to 16 bytes with zeros
//                float codes (e4m3 ... e2m1) as they are; integers as q - zero where weights are symmetric, else q,
//                both signed
//   scales       [N][G] fp32, where a row has a scale or several
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
  int64_t scales = -1, zeros = -1, index = -1, pre_scale = -1, bias = -1, bytes = 0;
};
CodeRows code_rows_of(const LayerSpec& layer);

}  // namespace gearshift
