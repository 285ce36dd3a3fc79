// 4-bit integers in groups for tensor cores: units of rows16.h; nibble i of each 16-bit half is the code of register
// a_i.
//
//   codes: u = q + 8 where the writer's numbers are signed, q itself where they are not: 0..15
//   scales after them: [group g of the unit][row r of 8] uint32: the scales of rows r (low half) and r + 8, 16 bits
//   each as stored zeros after the scales, where the layer has zero points: the same shape, bf16 of 128 + z (z in the
//   meaning of u, 0..16)
// A group of 32 or 64 columns has its own scale; larger ones (multiples of 128, or the whole row) repeat theirs in
// every unit. unpack() gives codes u, then as `scales` the stored 16-bit scales [N,G] and behind them, with zero
// points, z as bytes [N,G].
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Layout int4_rows16_mma;

// Groups in a unit: 4, 2 or 1.
int64_t int4_groups_in_unit(const LayerSpec& layer);
int64_t int4_unit_bytes(const LayerSpec& layer);

}  // namespace gearshift
