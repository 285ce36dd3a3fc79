// Row-major codes of a byte each, two neighbours at a time, to pairs of bf16 or fp16 (Half).
//
//   half, power  which, and that values are codes times 2^-power
//   decode       bytes 0 and 1 of a word
#pragma once

#include "kernel/cuda/stage/decode_rows.cuh"
#include "kernel/cuda/stage/decode_unit.cuh"
#include "kernel/cuda/stage/hopper.cuh"

namespace gearshift::cuda {

// Bytes widened with their sign, then moved until exponent and mantissa stand where the wider type has them (subnormals
// included); what the sign left between them is masked out.
template <int Exponent, int Mantissa, bool Half>
struct FloatPair {
  using Code = FloatCode<Exponent, Mantissa, Half>;
  static constexpr bool half = Half;
  static constexpr int power = Code::power;
  GEARSHIFT_DEVICE uint32_t decode(uint32_t codes) {
    constexpr int unused = 7 - Code::magnitude_bits;  // bits of a byte above the code's sign
    const uint32_t wide = widened_bytes(codes << unused);
    return (wide << (Code::shift - unused)) & (Code::magnitude * 0x10001u | 0x80008000u);
  }
};

template <bool Half>
struct Int8Pair {
  static constexpr bool half = Half;
  static constexpr int power = 0;
  GEARSHIFT_DEVICE uint32_t decode(uint32_t codes) { return Int8Code<Half>::pair(__byte_perm(codes, 0, 0x4140)); }
};

// What decoded pairs are multiplied by before they enter a product: the power of two that decoding left out, and scales
// of columns where there are some, rounded to the type. A smaller power stays out of those that have both, so that
// scales up to 2^31 are in range.
template <class Pair, RowScales Scales>
struct ScaledPair {
  static constexpr int left_power = Pair::half ? Pair::power : Scales == RowScales::none || Pair::power == 0 ? 0 : 24;
  static constexpr int power = Pair::power - left_power;
  static constexpr float left = static_cast<float>(uint32_t{1} << left_power);
  static_assert(!Pair::half || Scales == RowScales::none, "fp16 has no room for scales of columns");
  static constexpr int groups = Scales == RowScales::none ? 1 : Scales == RowScales::one ? 1 : 4;
  uint32_t scales[groups];

  // Words of rows r and r + 8, as they are stored beside the codes.
  __device__ __forceinline__ void take(uint2 words) {
    if constexpr (Scales == RowScales::one) {
      constexpr float unit = static_cast<float>(uint64_t{1} << (power / 2)) * (uint64_t{1} << (power - power / 2));
      scales[0] = bf16_pair(__uint_as_float(words.x) * unit, __uint_as_float(words.y) * unit);
    } else if constexpr (Scales == RowScales::powers) {
#pragma unroll
      for (int g = 0; g < 4; g++) {
        // An exponent past the last becomes infinite.
        const uint32_t exponents = __byte_perm(words.x, words.y, g | (4 + g) << 8) & 0x00FF00FFu;
        scales[g] = min_u16x2(exponents + static_cast<uint32_t>(power) * 0x10001u, 0x00FF00FFu) << 7;
      }
    }
  }
  // Of the step of 16 columns number j.
  __device__ __forceinline__ void apply(int j, uint32_t* a) const {
    if constexpr (Scales != RowScales::none) {
      scale_fragment(a, scales[j * groups / 8]);
    } else if constexpr (power != 0) {
#pragma unroll
      for (int i = 0; i < 4; i++) a[i] = product_bf16x2(a[i], static_cast<uint32_t>(127 + power) * 0x00800080u);
    }
  }
};

}  // namespace gearshift::cuda
