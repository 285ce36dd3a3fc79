// Eight e2m1 codes in one word of a unit, placed so that a shift and a mask bring each pair to where bf16 has it.
//
// In each 16-bit half: magnitudes at bits 8:6, 5:3, 2:0, 11:9 for registers a0..a3, signs at 15, 12, 13, 14. A bf16
// made of the sign and three bits at 8:6 is the value times 2^-126 (e2m1's subnormal 0.5 becomes the subnormal 2^-127).
#pragma once

#include <cstdint>

namespace gearshift {

inline constexpr int e2m1_magnitude_shift[4] = {6, 3, 0, 9};
inline constexpr int e2m1_sign_shift[4] = {15, 12, 13, 14};

constexpr uint32_t put_e2m1(int reg, int half, uint32_t code) {
  return (((code & 7) << e2m1_magnitude_shift[reg]) | ((code >> 3) << e2m1_sign_shift[reg])) << (16 * half);
}
constexpr uint32_t get_e2m1(uint32_t word, int reg, int half) {
  const uint32_t bits = word >> (16 * half);
  return ((bits >> e2m1_magnitude_shift[reg]) & 7) | (((bits >> e2m1_sign_shift[reg]) & 1) << 3);
}

}  // namespace gearshift
