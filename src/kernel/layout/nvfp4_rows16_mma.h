// NVFP4 for tensor cores: units of rows16.h, 1152 bytes: codes as in e2m1_word.h, then 128 bytes of scales.
//
//   scales: [row r of 8][pair p of 4] uint32; low half row r, high half row r + 8; each half holds the scales of groups
//   2p and
//           2p + 1 of the unit as bytes b0, b1: b0 in bits 11:4, the high nibble of b1 in bits 3:0, its low nibble in
//           bits 15:12
// A scale byte is the e4m3 scale re-coded without loss as 5 bits of exponent (bias 22 + 7 against e4m3's 7) and 3 of
// mantissa, so that (byte << 4) | 0x7000 is a bf16 worth scale * 2^119; times a code's 2^-126 that leaves 2^-7. All 126
// positive e4m3 values fit; a zero scale has byte 0 and zeroes its codes.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Layout nvfp4_rows16_mma;

inline constexpr int64_t kNvfp4UnitBytes = 1024 + 128;
// What a result is multiplied by besides the tensor-wide scale.
inline constexpr float kNvfp4Leftover = 0x1p7f;

// e4m3 without sign -> byte, and back. Subnormals become normal numbers of the wider exponent.
constexpr uint32_t nvfp4_scale_byte(uint32_t e4m3) {
  if ((e4m3 & 0x7F) == 0) return 0;
  int exponent = static_cast<int>((e4m3 >> 3) & 15);
  uint32_t mantissa = e4m3 & 7;
  if (exponent == 0) {
    exponent = 1;
    for (; (mantissa & 8) == 0; mantissa <<= 1) --exponent;
    mantissa &= 7;
  }
  return static_cast<uint32_t>(exponent + 15) << 3 | mantissa;
}
constexpr uint8_t nvfp4_scale_of_byte(uint32_t byte) {
  if (byte == 0) return 0;
  const int exponent = static_cast<int>(byte >> 3) - 15;
  const uint32_t mantissa = byte & 7;
  if (exponent >= 1) return static_cast<uint8_t>(static_cast<uint32_t>(exponent) << 3 | mantissa);
  return static_cast<uint8_t>((mantissa | 8) >> (1 - exponent));
}

}  // namespace gearshift
