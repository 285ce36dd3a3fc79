// Symmetric 4-bit integers as e4m3 numbers: units of rows16_e4m3.h.
//
//   codes: number i in bits 8 (i % 4) + 4 (i / 4) and the three above: the sign of q on top, below it q, or -1 - q
//   where q is negative. A byte of up to 8 read as e4m3 is that many times 2^-9, so that a code's magnitude is its
//   number. scales: [row of 16] fp32 of 128 columns; larger groups (multiples of 128, or the whole row) repeat theirs
//   in every unit. What 2^-9 leaves over is in the record's factor. pre-scale after the records, where x is multiplied
//   column-wise first: [part][K] fp32
// unpack() gives codes q + 8, and scales as fp32 [N,G].
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Layout int4_rows16_e4m3;

// Where the pre-scale begins; -1 without.
int64_t int4_e4m3_pre_scale_at(const LayerSpec& layer);

}  // namespace gearshift
