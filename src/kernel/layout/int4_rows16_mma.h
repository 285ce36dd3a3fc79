// 4-bit integers in groups for tensor cores: units of rows16.h; nibble i of each 16-bit half is the code of register
// a_i.
//
//   codes: u = q + 8 where the writer's numbers are signed, q itself where they are not: 0..15
//   scales after them: [group g of the unit][row r of 8] uint32: the scales of rows r (low half) and r + 8, 16 bits
//   each as stored zeros after the scales, where the layer has zero points: the same shape, bf16 of 128 + z (z in the
//   meaning of u, 0..16)
// A group of 32 or 64 columns has its own scale; larger ones (multiples of 128, or the whole row) repeat theirs in
// every unit.
//   column order, with act-order only, after the records: [part][K] int32, the column that comes k-th. Columns are
//   sorted by group, so that units hold whole groups; x is gathered in the same order. Where groups are not all as wide
//   as the scheme says no order does that: factors are then NaN, so that no result passes for one.
// unpack() gives codes u, then as `scales` the stored 16-bit scales [N,G] and behind them, with zero
// points, z as bytes [N,G].
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Layout int4_rows16_mma;

// Groups in a unit: 4, 2 or 1.
int64_t int4_groups_in_unit(const LayerSpec& layer);
// Scales of a row.
int64_t int4_groups_of_row(const LayerSpec& layer);
int64_t int4_unit_bytes(const LayerSpec& layer);
// Where the column order begins; -1 without act-order.
int64_t int4_column_order_at(const LayerSpec& layer);

}  // namespace gearshift
