// Exact activations in 256 bits: codes become fp32 through the two bytes of their bf16 values.
//
// In registers, 32 bytes of codes (8 rows, 8 columns) give eight vectors whose lanes are row 0 column a, row 0 column
// b, row 1 column a, row 1 column b, ...: x enters as broadcast pairs, and one horizontal addition per span sets it
// right.
#include "kernel/cpu/stage/pieces.h"
#include "kernel/cpu/stage/with_rows.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

#include <bit>

namespace gearshift {

namespace {

constexpr int kRegisterRows = 4;
// 6 x 2 sums, two vectors of weights, one of x: 15 of 16 registers.
constexpr int kPanelRowsOfX = 6;

struct ByteTables {
  __m256i low, high;  // bytes of the bf16 value of a code
};
GEARSHIFT_AVX2 inline ByteTables byte_tables(const NibbleTable& table) {
  alignas(16) uint8_t low[16], high[16];
  for (size_t i = 0; i < 16; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(table.value[i]);
    low[i] = static_cast<uint8_t>(bits >> 16);
    high[i] = static_cast<uint8_t>(bits >> 24);
  }
  return {_mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(low))),
          _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(high)))};
}

// Four columns of eight rows: [0] columns 0 2 of rows 0 1 | 4 5, [1] the same of rows 2 3 | 6 7, [2] [3] columns 1 3.
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void widen(__m256i codes, const ByteTables& tables,
                                                                __m256 out[4]) {
  const __m256i odd = _mm256_set1_epi32(static_cast<int32_t>(0xffff0000));
  const __m256i low = _mm256_shuffle_epi8(tables.low, codes);
  const __m256i high = _mm256_shuffle_epi8(tables.high, codes);
  const __m256i first = _mm256_unpacklo_epi8(low, high);
  const __m256i second = _mm256_unpackhi_epi8(low, high);
  out[0] = _mm256_castsi256_ps(_mm256_slli_epi32(first, 16));
  out[1] = _mm256_castsi256_ps(_mm256_slli_epi32(second, 16));
  out[2] = _mm256_castsi256_ps(_mm256_and_si256(first, odd));
  out[3] = _mm256_castsi256_ps(_mm256_and_si256(second, odd));
}

// out[4 c + ...] for low (c = 0) and high (c = 1) nibbles of one octet of columns.
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void widen_octet(const uint8_t* at, const ByteTables& tables,
                                                                      __m256 out[8]) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  widen(_mm256_and_si256(codes, nibble), tables, out);
  widen(_mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble), tables, out + 4);
}

template <int W, bool Zeros>
GEARSHIFT_AVX2 void registers(const ProductArgs& args) {
  const ByteTables tables = byte_tables(*args.table);
  const auto* x0 = static_cast<const float*>(args.x);
  for (int64_t first = 0, span = 0; first < args.columns; first += args.span, ++span) {
    const int64_t octets = (args.columns - first < args.span ? args.columns - first : args.span) / 8;
    for (int half = 0; half < 2; ++half) {
      const uint8_t* weights = args.weights + first * 8 + 32 * half;
      const float* x = x0 + first * W;
      __m256 zero[2];
      if constexpr (Zeros) {
        const __m256 zeros = _mm256_loadu_ps(args.zeros + span * 16 + 8 * half);
        zero[0] = _mm256_unpacklo_ps(zeros, zeros);
        zero[1] = _mm256_unpackhi_ps(zeros, zeros);
      }
      __m256 sum[W][2];
#pragma GCC unroll 4
      for (int m = 0; m < W; ++m) sum[m][0] = sum[m][1] = _mm256_setzero_ps();
      for (int64_t octet = 0; octet < octets; ++octet, weights += 64, x += 8 * W) {
        if (half == 0) prefetch_ahead<64>(weights);
        __m256 weight[8];
        widen_octet(weights, tables, weight);
#pragma GCC unroll 4
        for (int pair = 0; pair < 4; ++pair) {
#pragma GCC unroll 2
          for (int side = 0; side < 2; ++side) {
            __m256 value = weight[2 * pair + side];
            if constexpr (Zeros) value = _mm256_sub_ps(value, zero[side]);
#pragma GCC unroll 4
            for (int m = 0; m < W; ++m) {
              const __m256 two =
                  _mm256_castpd_ps(_mm256_broadcast_sd(reinterpret_cast<const double*>(x + 2 * (pair * W + m))));
              sum[m][side] = _mm256_fmadd_ps(value, two, sum[m][side]);
            }
          }
        }
      }
      const __m256 scale = _mm256_loadu_ps(args.scales + span * 16 + 8 * half);
#pragma GCC unroll 4
      for (int m = 0; m < W; ++m) {
        float* to = args.sums + 16 * m + 8 * half;
        const __m256 rows = _mm256_hadd_ps(sum[m][0], sum[m][1]);
        _mm256_storeu_ps(to, _mm256_fmadd_ps(rows, scale, _mm256_loadu_ps(to)));
      }
    }
  }
}

// The same for one row of x and the codes of four panels.
template <bool Zeros>
GEARSHIFT_AVX2 void registers_of_panels(const ProductArgs& args) {
  const ByteTables tables = byte_tables(*args.table);
  const __m256i nibble = _mm256_set1_epi8(15);
  const CodesOfPanels codes(args);
  for (int64_t first = 0, span = 0; first < args.columns; first += args.span, ++span) {
    const int64_t octets = (args.columns - first < args.span ? args.columns - first : args.span) / 8;
    for (int half = 0; half < 2; ++half) {
      const auto* x = static_cast<const float*>(args.x) + first;
      const int64_t rows = span * 16 * kOneRowPanels + 8 * half;
      __m256 sum[kOneRowPanels][2];
#pragma GCC unroll 4
      for (int p = 0; p < kOneRowPanels; ++p) sum[p][0] = sum[p][1] = _mm256_setzero_ps();
      for (int64_t octet = 0; octet < octets; ++octet, x += 8) {
        const int64_t at = (first + 8 * octet) * 8 + 32 * half;
#pragma GCC unroll 4
        for (int p = 0; p < kOneRowPanels; ++p) {
          if (half == 0) prefetch_ahead<64, kNearBytes>(codes.at[p] + at);
          const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes.at[p] + at));
          __m256 zero[2];
          if constexpr (Zeros) {
            const __m256 zeros = _mm256_loadu_ps(args.zeros + rows + 16 * p);
            zero[0] = _mm256_unpacklo_ps(zeros, zeros);
            zero[1] = _mm256_unpackhi_ps(zeros, zeros);
          }
#pragma GCC unroll 2
          for (int four = 0; four < 2; ++four) {
            __m256 weight[4];
            widen(_mm256_and_si256(four == 0 ? both : _mm256_srli_epi16(both, 4), nibble), tables, weight);
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
              const auto* pair = reinterpret_cast<const double*>(x + 2 * (2 * four + i / 2));
              __m256 value = weight[i];
              if constexpr (Zeros) value = _mm256_sub_ps(value, zero[i % 2]);
              sum[p][i % 2] = _mm256_fmadd_ps(value, _mm256_castpd_ps(_mm256_broadcast_sd(pair)), sum[p][i % 2]);
            }
          }
        }
      }
#pragma GCC unroll 4
      for (int p = 0; p < kOneRowPanels; ++p) {
        float* to = args.sums + 16 * p + 8 * half;
        const __m256 scale = _mm256_loadu_ps(args.scales + rows + 16 * p);
        _mm256_storeu_ps(to, _mm256_fmadd_ps(_mm256_hadd_ps(sum[p][0], sum[p][1]), scale, _mm256_loadu_ps(to)));
      }
    }
  }
}

void multiply_panels(const ProductArgs& args) {
  args.zeros != nullptr ? registers_of_panels<true>(args) : registers_of_panels<false>(args);
}

void multiply_registers(const ProductArgs& args) {
  with_rows<kRegisterRows>(
      args.w, [&]<int W>() { args.zeros != nullptr ? registers<W, true>(args) : registers<W, false>(args); });
}

// The panel: fp32 [column][16 rows].
template <int W>
GEARSHIFT_AVX2 void panel(const ProductArgs& args) {
  const auto* weights = reinterpret_cast<const float*>(args.weights);
  const auto* x = static_cast<const float*>(args.x);
  __m256 sum[W][2];
#pragma GCC unroll 6
  for (int m = 0; m < W; ++m) {
    sum[m][0] = _mm256_loadu_ps(args.sums + 16 * m);
    sum[m][1] = _mm256_loadu_ps(args.sums + 16 * m + 8);
  }
#pragma GCC unroll 2
  for (int64_t k = 0; k < args.columns; ++k, weights += 16, x += W) {
    const __m256 first = _mm256_load_ps(weights);
    const __m256 second = _mm256_load_ps(weights + 8);
#pragma GCC unroll 6
    for (int m = 0; m < W; ++m) {
      const __m256 value = _mm256_broadcast_ss(x + m);
      sum[m][0] = _mm256_fmadd_ps(first, value, sum[m][0]);
      sum[m][1] = _mm256_fmadd_ps(second, value, sum[m][1]);
    }
  }
#pragma GCC unroll 6
  for (int m = 0; m < W; ++m) {
    _mm256_storeu_ps(args.sums + 16 * m, sum[m][0]);
    _mm256_storeu_ps(args.sums + 16 * m + 8, sum[m][1]);
  }
}

void multiply_panel(const ProductArgs& args) {
  with_rows<kPanelRowsOfX>(args.w, [&]<int W>() { panel<W>(args); });
}

// (value - zero) * scale of eight rows, to their place in column k.
GEARSHIFT_AVX2 inline void put(__m256 value, const float* zeros, __m256 scale, float* to) {
  if (zeros != nullptr) value = _mm256_sub_ps(value, _mm256_loadu_ps(zeros));
  _mm256_store_ps(to, _mm256_mul_ps(value, scale));
}

GEARSHIFT_AVX2 void decode(const DecodeArgs& args) {
  const ByteTables tables = byte_tables(*args.table);
  const int shift = shift_of(args.span);
  auto* panel_of_floats = reinterpret_cast<float*>(args.panel);
  for (int64_t k = 0; k < args.columns; k += 8) {
    prefetch_ahead<64>(args.codes + k * 8);
    for (int half = 0; half < 2; ++half) {
      const int64_t at = (k >> shift) * 16 + 8 * half;
      const float* zeros = args.zeros == nullptr ? nullptr : args.zeros + at;
      const __m256 scale = _mm256_loadu_ps(args.scales + at);
      __m256 two[8];
      widen_octet(args.codes + k * 8 + 32 * half, tables, two);
      float* to = panel_of_floats + k * 16 + 8 * half;
#pragma GCC unroll 2
      for (int c = 0; c < 2; ++c, to += 4 * 16) {
        const __m256* four = two + 4 * c;
        put(_mm256_shuffle_ps(four[0], four[1], 0x88), zeros, scale, to);
        put(_mm256_shuffle_ps(four[2], four[3], 0x88), zeros, scale, to + 16);
        put(_mm256_shuffle_ps(four[0], four[1], 0xdd), zeros, scale, to + 32);
        put(_mm256_shuffle_ps(four[2], four[3], 0xdd), zeros, scale, to + 48);
      }
    }
  }
}

}  // namespace

Pieces float_registers_avx2(int64_t m) {
  if (m == 1) return {kOneRowPanels, 1, 0, XOrder::float_pairs, Correction::span, nullptr, multiply_panels};
  return {1, kRegisterRows, 0, XOrder::float_pairs, Correction::span, nullptr, multiply_registers};
}
Pieces float_panel_avx2() { return {1, kPanelRowsOfX, 4, XOrder::floats, Correction::span, decode, multiply_panel}; }

}  // namespace gearshift

#endif
