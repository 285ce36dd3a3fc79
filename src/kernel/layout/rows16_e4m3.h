// Units of rows16.h in the order of 8-bit products: what a lane needs of 4-bit codes for the A fragment of
// wgmma.m64nNk32 (PTX ISA, "Matrix fragments"), which differs from that of 16-bit products.
//
//   unit, codes: [half of 64 columns][lane of 32][step of 32 columns, 2][row r, row r + 8] uint32, 1024 bytes
//           lane = 4 (row % 8) + t; a word holds eight codes of one row:
//             number 0 .. 3  columns 4t .. 4t + 3 of the step (register a0, or a1 of row r + 8)
//             number 4 .. 7  columns 16 + 4t .. 16 + 4t + 3 (a2, or a3)
//   then 64 bytes of scales
// Where a code's bits lie inside the word is the format's own (see each layout). All codes of a word share the scale of
// their row, so that a lane decodes them alike.
#pragma once

#include "kernel/layout/rows16.h"

namespace gearshift {

inline constexpr int64_t kE4m3UnitBytes = kUnitCodeBytes + 64;

// Where the code at (row, column) of a unit lies: byte offset of its word, and its number there.
struct E4m3Place {
  int64_t word;
  int number;
};
inline E4m3Place e4m3_place(int64_t row, int64_t column) {
  const int64_t in_step = column % 32, lane = 4 * (row % 8) + in_step % 16 / 4;
  const int64_t word = column / 64 * 512 + lane * 16 + column % 64 / 32 * 8 + row / 8 * 4;
  return {word, static_cast<int>(in_step / 16 * 4 + in_step % 4)};
}

}  // namespace gearshift
