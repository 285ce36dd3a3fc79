// Tiles of 16 rows x 128 codes of a byte each, cut from row-major weights (kernel/layout/code_rows.h), from shared
// memory to A fragments of bf16 or fp16.
//
// Which column of a tile is the k-th of a fragment is free as long as x follows: here lane t of four owns columns
// 32 g + 8 t .. + 7 of each group g of 32, one 8-byte read for two steps. In a word of four codes c0..c3, registers a0
// and a1 (rows r, r + 8) take c0 and c2, a2 and a3 take c1 and c3: bytes of 16-bit halves, one shift each. A scale of
// 32 columns therefore still covers whole steps. In shared memory a row is eight pieces of 16 bytes; piece c of row r
// lies at c ^ row_swizzle(r), so that neither these reads nor the copies meet a bank twice.
#pragma once

#include "kernel/cuda/stage/ptx.cuh"

namespace gearshift::cuda {

inline constexpr int row_tile_bytes = 16 * 128;
inline constexpr int row_scale_bytes = 16 * 4;

GEARSHIFT_DEVICE int row_swizzle(int row) { return ((row & 1) << 2) | (row & 2); }

// How 8-bit codes become pairs of 16-bit floats. even(w): bytes 0 and 2 of a word, odd(w): bytes 1 and 3.
// `left`: what results are multiplied by afterwards.
template <int Exponent, int Mantissa, bool Half>
struct FloatCode {
  // A code's magnitude, moved to where the wider type has it, is the value times a power of two (subnormals included).
  static constexpr int magnitude_bits = Exponent + Mantissa, sign_at = magnitude_bits;
  static constexpr int mantissa_of_target = Half ? 10 : 7;
  static constexpr int shift = mantissa_of_target - Mantissa;  // of the magnitude
  static constexpr uint32_t magnitude = ((1u << magnitude_bits) - 1u) << shift;
  static constexpr int bias = (1 << (Exponent - 1)) - 1, bias_of_target = Half ? 15 : 127;
  static constexpr int power = bias_of_target - bias;
  // bf16 values are brought back by a multiplication; fp16 ones are in range, the factor waits for the sums.
  static constexpr float left = Half ? static_cast<float>(1u << (Half ? power : 0)) : 1.f;

  GEARSHIFT_DEVICE uint32_t moved(uint32_t w, int by) { return by >= 0 ? w << by : w >> -by; }
  template <int Byte>
  GEARSHIFT_DEVICE uint32_t pair(uint32_t w) {
    constexpr uint32_t magnitudes = magnitude * 0x10001u, signs = 0x80008000u;
    const uint32_t code = (moved(w, shift - 8 * Byte) & magnitudes) | (moved(w, 15 - sign_at - 8 * Byte) & signs);
    if constexpr (Half) return code;
    return product_bf16x2(code, static_cast<uint32_t>(127 + power) << 7 | static_cast<uint32_t>(127 + power) << 23);
  }
  GEARSHIFT_DEVICE uint32_t even(uint32_t w) { return pair<0>(w); }
  GEARSHIFT_DEVICE uint32_t odd(uint32_t w) { return pair<1>(w); }
};

// Two's complement: the low seven bits u and the sign bit s become mantissas, (b + u) - (b + 128 s) with b = 128 (bf16)
// or 1024 (fp16), exactly.
template <bool Half>
struct Int8Code {
  static constexpr float left = 1.f;
  GEARSHIFT_DEVICE uint32_t pair(uint32_t w) {
    const uint32_t exponent = in_register(Half ? 0x64006400u : 0x43004300u);
    const uint32_t low = and_or<0x007F007Fu>(w, exponent), high = and_or<0x00800080u>(w, exponent);
    return Half ? difference_f16x2(low, high) : difference_bf16x2(low, high);
  }
  GEARSHIFT_DEVICE uint32_t even(uint32_t w) { return pair(w); }
  GEARSHIFT_DEVICE uint32_t odd(uint32_t w) { return pair(w >> 8); }
};

// Scales beside the tiles, [row of 16] of 4 bytes.
enum class RowScales { none, one /* fp32: of all 128 columns */, powers /* e8m0: of 32 columns each */ };

template <class Code, RowScales Scales, bool Half>
struct RowTile {
  static constexpr bool row_major = true, half = Half;
  static constexpr int bytes = row_tile_bytes + (Scales == RowScales::none ? 0 : row_scale_bytes);
  static constexpr int groups = Scales == RowScales::none ? 0 : Scales == RowScales::one ? 1 : 4;
  static constexpr float left = Code::left;
  struct Raw {
    uint2 upper[4], lower[4];  // rows r and r + 8, by group of 32 columns
    uint32_t scales[2];
  };
  using Regs = Raw;
  GEARSHIFT_DEVICE void load(Raw& raw, uint32_t tile, int lane) {
    const int row = lane >> 2, t = lane & 3;
    const uint32_t at = tile + row * 128 + (t & 1) * 8;
#pragma unroll
    for (int g = 0; g < 4; g++) {
      const uint32_t piece = ((g * 2 + (t >> 1)) ^ row_swizzle(row)) * 16;
      raw.upper[g] = load_shared2(at + piece);
      raw.lower[g] = load_shared2(at + piece + 8 * 128);
    }
    if constexpr (groups > 0) {
      raw.scales[0] = load_shared1(tile + row_tile_bytes + row * 4);
      raw.scales[1] = load_shared1(tile + row_tile_bytes + row * 4 + 32);
    }
  }
  GEARSHIFT_DEVICE void expand(Regs& regs, const Raw& raw) { regs = raw; }
  GEARSHIFT_DEVICE void step(const Regs& regs, int j, uint32_t* a) {
    const uint2 &upper = regs.upper[j >> 1], &lower = regs.lower[j >> 1];
    const uint32_t u = j & 1 ? upper.y : upper.x, l = j & 1 ? lower.y : lower.x;
    a[0] = Code::even(u);
    a[1] = Code::even(l);
    a[2] = Code::odd(u);
    a[3] = Code::odd(l);
  }
  GEARSHIFT_DEVICE float power_of(uint32_t byte) {
    return __uint_as_float(byte == 0 ? 0x00400000u : byte << 23);  // 2^-127 is subnormal
  }
  GEARSHIFT_DEVICE float2 group_scale(const Regs& regs, int g, bool) {
    if constexpr (Scales == RowScales::powers)
      return make_float2(power_of(regs.scales[0] >> (8 * g) & 255u), power_of(regs.scales[1] >> (8 * g) & 255u));
    return make_float2(__uint_as_float(regs.scales[0]), __uint_as_float(regs.scales[1]));
  }
};

}  // namespace gearshift::cuda
