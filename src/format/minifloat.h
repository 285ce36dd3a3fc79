// Floats of up to 16 bits described as data, with one decoder and one encoder for all of them.
//
// A code is sign, exponent, mantissa from the high bit down; codes without their sign are ordered like the values.
// Everything here is exact integer work, so it gives the same bits on every machine and at compile time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace gearshift::format {

// One row of the table of element formats.
struct Minifloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  uint32_t max_code;  // largest finite value, without sign
  bool has_infinity;  // the code after max_code is infinity; every other code above max_code is NaN
  uint32_t nan_code;  // what the encoder writes for NaN, without sign

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr bool has_nan() const { return nan_code > max_code; }
};

enum class Overflow : uint8_t { saturate, infinity };

// 2^exponent, exact. REQUIRES: -149 <= exponent <= 127 (what a float can hold, subnormals included).
constexpr float pow2(int exponent) {
  return static_cast<float>(std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52));
}

// Bits above the format's width are ignored.
template <Minifloat F>
constexpr float decode_minifloat(uint32_t code) {
  const uint32_t magnitude = code & (F.sign_bit() - 1);
  float value = 0;
  if (magnitude > F.max_code) {
    value = F.has_infinity && magnitude == F.max_code + 1 ? std::numeric_limits<float>::infinity()
                                                          : std::numeric_limits<float>::quiet_NaN();
  } else {
    const uint32_t mantissa = magnitude & ((1u << F.mantissa_bits) - 1);
    const int exponent = static_cast<int>(magnitude >> F.mantissa_bits);
    // A subnormal has no hidden bit and the exponent of the smallest normal.
    const uint32_t significand = exponent == 0 ? mantissa : mantissa | (1u << F.mantissa_bits);
    value = static_cast<float>(significand) * pow2((exponent == 0 ? 1 : exponent) - F.bias - F.mantissa_bits);
  }
  return (code & F.sign_bit()) != 0 ? -value : value;
}

// Round to nearest, ties to even. The sign is kept for zero and, where the format has NaN, for NaN; in a format without
// NaN it becomes +max, as the conversion instructions of GPUs do. Past the largest value: see Overflow.
template <Minifloat F, Overflow overflow>
constexpr uint32_t encode_minifloat(float x) {
  constexpr uint32_t float_infinity = 0x7F800000u;
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t sign = (bits >> 31) != 0 ? F.sign_bit() : 0;
  if (magnitude > float_infinity) return F.has_nan() ? sign | F.nan_code : F.nan_code;
  constexpr uint32_t too_large = overflow == Overflow::saturate ? F.max_code : F.max_code + 1;
  if (magnitude == float_infinity) return sign | too_large;

  // |x| = significand * 2^(exponent - 23)
  const int stored = static_cast<int>(magnitude >> 23);
  const uint32_t significand = stored == 0 ? magnitude : (magnitude & 0x7FFFFFu) | 0x800000u;
  const int exponent = (stored == 0 ? 1 : stored) - 127;
  // The result counts units of 2^(unit_exponent - mantissa_bits); below the smallest normal the unit stops shrinking.
  constexpr int min_exponent = 1 - F.bias;
  const int unit_exponent = exponent < min_exponent ? min_exponent : exponent;
  const int dropped = unit_exponent - exponent + 23 - F.mantissa_bits;
  if (dropped > 24) return sign;  // below half of the smallest subnormal
  const uint32_t odd = (significand >> dropped) & 1;
  const uint32_t units = (significand + (1u << (dropped - 1)) - 1 + odd) >> dropped;
  // `units` includes the hidden bit, which together with a carry out of the mantissa moves the exponent by itself.
  const uint32_t code = (static_cast<uint32_t>(unit_exponent - min_exponent) << F.mantissa_bits) + units;
  return sign | (code > F.max_code ? too_large : code);
}

// Value of every code of a format of at most 8 bits, indexed by code.
template <Minifloat F>
constexpr std::array<float, 1u << F.bits()> decode_table() {
  std::array<float, 1u << F.bits()> table{};
  for (uint32_t code = 0; code < table.size(); ++code) table[code] = decode_minifloat<F>(code);
  return table;
}

}  // namespace gearshift::format
