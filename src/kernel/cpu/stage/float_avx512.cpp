// Exact activations in 512 bits: fp32 through a table of sixteen values, or bf16 pairs.
#include "kernel/cpu/stage/pair_words.h"
#include "kernel/cpu/stage/pieces.h"
#include "kernel/cpu/stage/wide.h"
#include "kernel/cpu/stage/with_rows.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

namespace {

constexpr int kRegisterRows = 8;
// 12 x 2 sums, two vectors of weights, one of x.
constexpr int kPanelRowsOfX = 12;

// Column, of eight, that nibble i of a 32-bit lane holds.
constexpr int kColumnOfNibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};

// The value of nibble i: a permutation looks at the low four bits of its index only.
template <int I>
GEARSHIFT_AVX512 inline __m512 value_of(__m512i codes, __m512 table) {
  return _mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4 * I), table);
}

template <int W, bool Zeros, int I>
GEARSHIFT_AVX512 inline __attribute__((always_inline)) void nibble(__m512i codes, __m512 table, __m512 zero,
                                                                   const float* x, __m512 (&sum)[W]) {
  __m512 value = value_of<I>(codes, table);
  if constexpr (Zeros) value = _mm512_sub_ps(value, zero);
#pragma GCC unroll 8
  for (int m = 0; m < W; ++m) {
    sum[m] = _mm512_fmadd_ps(value, _mm512_set1_ps(x[kColumnOfNibble[I] * W + m]), sum[m]);
  }
}

template <int W, bool Zeros>
GEARSHIFT_AVX512 void registers(const ProductArgs& args) {
  const __m512 table = _mm512_load_ps(args.table->value.data());
  const uint8_t* weights = args.weights;
  const auto* x = static_cast<const float*>(args.x);
  for (int64_t first = 0, span = 0; first < args.columns; first += args.span, ++span) {
    __m512 zero = _mm512_setzero_ps();
    if constexpr (Zeros) zero = _mm512_loadu_ps(args.zeros + span * 16);
    __m512 sum[W];
#pragma GCC unroll 8
    for (int m = 0; m < W; ++m) sum[m] = _mm512_setzero_ps();
    int64_t octets = (args.columns - first < args.span ? args.columns - first : args.span) / 8;
    for (; octets > 0; --octets, weights += 64, x += 8 * W) {
      prefetch_ahead<64>(weights);
      const __m512i codes = _mm512_loadu_si512(weights);
      nibble<W, Zeros, 0>(codes, table, zero, x, sum);
      nibble<W, Zeros, 1>(codes, table, zero, x, sum);
      nibble<W, Zeros, 2>(codes, table, zero, x, sum);
      nibble<W, Zeros, 3>(codes, table, zero, x, sum);
      nibble<W, Zeros, 4>(codes, table, zero, x, sum);
      nibble<W, Zeros, 5>(codes, table, zero, x, sum);
      nibble<W, Zeros, 6>(codes, table, zero, x, sum);
      nibble<W, Zeros, 7>(codes, table, zero, x, sum);
    }
    const __m512 scale = _mm512_loadu_ps(args.scales + span * 16);
#pragma GCC unroll 8
    for (int m = 0; m < W; ++m) {
      float* to = args.sums + 16 * m;
      _mm512_storeu_ps(to, _mm512_fmadd_ps(sum[m], scale, _mm512_loadu_ps(to)));
    }
  }
}

// The same for one row of x and the codes of four panels.
template <bool Zeros, int I>
GEARSHIFT_AVX512 inline __attribute__((always_inline)) void nibble_of_panels(const __m512i (&codes)[kOneRowPanels],
                                                                             __m512 table,
                                                                             const __m512 (&zero)[kOneRowPanels],
                                                                             const float* x,
                                                                             __m512 (&sum)[kOneRowPanels]) {
  const __m512 value = _mm512_set1_ps(x[kColumnOfNibble[I]]);
#pragma GCC unroll 4
  for (int p = 0; p < kOneRowPanels; ++p) {
    __m512 weight = value_of<I>(codes[p], table);
    if constexpr (Zeros) weight = _mm512_sub_ps(weight, zero[p]);
    sum[p] = _mm512_fmadd_ps(weight, value, sum[p]);
  }
}

template <bool Zeros>
GEARSHIFT_AVX512 void registers_of_panels(const ProductArgs& args) {
  const __m512 table = _mm512_load_ps(args.table->value.data());
  CodesOfPanels codes(args);
  const auto* x = static_cast<const float*>(args.x);
  for (int64_t first = 0, span = 0; first < args.columns; first += args.span, ++span) {
    __m512 zero[kOneRowPanels], sum[kOneRowPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kOneRowPanels; ++p) {
      zero[p] = Zeros ? _mm512_loadu_ps(args.zeros + (span * kOneRowPanels + p) * 16) : _mm512_setzero_ps();
      sum[p] = _mm512_setzero_ps();
    }
    int64_t octets = (args.columns - first < args.span ? args.columns - first : args.span) / 8;
    for (; octets > 0; --octets, x += 8) {
      __m512i both[kOneRowPanels];
#pragma GCC unroll 4
      for (int p = 0; p < kOneRowPanels; ++p) {
        prefetch_ahead<64, kNearBytes>(codes.at[p]);
        both[p] = _mm512_loadu_si512(codes.at[p]);
        codes.at[p] += 64;
      }
      nibble_of_panels<Zeros, 0>(both, table, zero, x, sum);
      nibble_of_panels<Zeros, 1>(both, table, zero, x, sum);
      nibble_of_panels<Zeros, 2>(both, table, zero, x, sum);
      nibble_of_panels<Zeros, 3>(both, table, zero, x, sum);
      nibble_of_panels<Zeros, 4>(both, table, zero, x, sum);
      nibble_of_panels<Zeros, 5>(both, table, zero, x, sum);
      nibble_of_panels<Zeros, 6>(both, table, zero, x, sum);
      nibble_of_panels<Zeros, 7>(both, table, zero, x, sum);
    }
#pragma GCC unroll 4
    for (int p = 0; p < kOneRowPanels; ++p) {
      float* to = args.sums + 16 * p;
      const __m512 scale = _mm512_loadu_ps(args.scales + (span * kOneRowPanels + p) * 16);
      _mm512_storeu_ps(to, _mm512_fmadd_ps(sum[p], scale, _mm512_loadu_ps(to)));
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

// The panel: fp32 [column][32 rows].
template <int W>
GEARSHIFT_AVX512 void panel(const ProductArgs& args) {
  const auto* weights = reinterpret_cast<const float*>(args.weights);
  const auto* x = static_cast<const float*>(args.x);
  __m512 sum[W][2];
#pragma GCC unroll 12
  for (int m = 0; m < W; ++m) {
    sum[m][0] = _mm512_loadu_ps(args.sums + 32 * m);
    sum[m][1] = _mm512_loadu_ps(args.sums + 32 * m + 16);
  }
  for (int64_t k = 0; k < args.columns; ++k, weights += 32, x += W) {
    const __m512 first = _mm512_load_ps(weights);
    const __m512 second = _mm512_load_ps(weights + 16);
#pragma GCC unroll 12
    for (int m = 0; m < W; ++m) {
      const __m512 value = _mm512_set1_ps(x[m]);
      sum[m][0] = _mm512_fmadd_ps(first, value, sum[m][0]);
      sum[m][1] = _mm512_fmadd_ps(second, value, sum[m][1]);
    }
  }
#pragma GCC unroll 12
  for (int m = 0; m < W; ++m) {
    _mm512_storeu_ps(args.sums + 32 * m, sum[m][0]);
    _mm512_storeu_ps(args.sums + 32 * m + 16, sum[m][1]);
  }
}

void multiply_panel(const ProductArgs& args) {
  with_rows<kPanelRowsOfX>(args.w, [&]<int W>() { panel<W>(args); });
}

template <int I>
GEARSHIFT_AVX512 inline void put(__m512i codes, __m512 table, __m512 zero, __m512 scale, float* to) {
  _mm512_store_ps(to + 32 * kColumnOfNibble[I], _mm512_mul_ps(_mm512_sub_ps(value_of<I>(codes, table), zero), scale));
}

GEARSHIFT_AVX512 void decode(const DecodeArgs& args) {
  const __m512 table = _mm512_load_ps(args.table->value.data());
  const int shift = shift_of(args.span);
  for (int64_t p = 0; p < args.panels; ++p) {
    const uint8_t* codes_of_panel = args.codes + p * args.panel_stride;
    for (int64_t k = 0; k < args.columns; k += 8) {
      prefetch_ahead<64>(codes_of_panel + k * 8);
      const int64_t at = (k >> shift) * 32 + 16 * p;
      const __m512 zero = args.zeros == nullptr ? _mm512_setzero_ps() : _mm512_loadu_ps(args.zeros + at);
      const __m512 scale = _mm512_loadu_ps(args.scales + at);
      const __m512i codes = _mm512_loadu_si512(codes_of_panel + k * 8);
      float* to = reinterpret_cast<float*>(args.panel) + k * 32 + 16 * p;
      put<0>(codes, table, zero, scale, to);
      put<1>(codes, table, zero, scale, to);
      put<2>(codes, table, zero, scale, to);
      put<3>(codes, table, zero, scale, to);
      put<4>(codes, table, zero, scale, to);
      put<5>(codes, table, zero, scale, to);
      put<6>(codes, table, zero, scale, to);
      put<7>(codes, table, zero, scale, to);
    }
  }
}

// ---- bf16 pairs: the multipliers of wide codes, whose panels are pairs too ------------------------------------------

constexpr int kAmxRowsOfX = 32;
// From one decoded panel of a pair to the other.
constexpr int64_t kPairPanelBytes = kBlockColumns * 32;

// Two values of a row times its scale.
GEARSHIFT_AVX512 inline __m512i scaled_pair(__m512i pair, __m512 scale) {
  const __m512 low = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(pair, 16)), scale);
  const __m512i odd = _mm512_set1_epi32(static_cast<int32_t>(0xffff0000));
  const __m512 high = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_and_si512(pair, odd)), scale);
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(low), 16), _mm512_castps_si512(high));
}

template <bool Zeros, bool Folded>
GEARSHIFT_AVX512 void decode_pairs(const DecodeArgs& args) {
  const PairWords<Zeros> words(*args.table);
  [[maybe_unused]] const int shift = shift_of(args.span);
  for (int64_t p = 0; p < args.panels; ++p) {
    const uint8_t* at = args.codes + p * args.panel_stride;
    uint8_t* to = args.panel + kPairPanelBytes * p;
    __m512i offset = _mm512_setzero_si512();
    __m512 scale = _mm512_setzero_ps();
    for (int64_t k = 0; k < args.columns; k += 8, at += 64, to += 256) {
      prefetch_ahead<64>(at);
      if constexpr (Folded) scale = _mm512_loadu_ps(args.scales + (k >> shift) * 32 + 16 * p);
      if constexpr (Zeros) {
        if ((k & (args.span - 1)) == 0) offset = words.offset(_mm512_loadu_ps(args.zeros + (k >> shift) * 32 + 16 * p));
      }
      __m512i codes = _mm512_loadu_si512(at);
#pragma GCC unroll 4
      for (int pair = 0; pair < 4; ++pair, codes = _mm512_srli_epi16(codes, 4)) {
        __m512i values = words(codes, offset);
        if constexpr (Folded) values = scaled_pair(values, scale);
        _mm512_store_si512(to + 64 * pair, values);
      }
    }
  }
}

void decode_bf16(const DecodeArgs& args) {
  if (args.folded) return decode_pairs<false, true>(args);
  args.zeros == nullptr ? decode_pairs<false, false>(args) : decode_pairs<true, false>(args);
}

template <void (*multiply)(const WideArgs&)>
void multiply_decoded(const ProductArgs& args) {
  WideArgs product{};
  product.weights = args.weights;
  product.stride = kPairPanelBytes;
  product.panels = 2;
  product.x = args.x;
  product.columns = args.columns;
  product.w = args.w;
  product.scales = args.folded ? nullptr : args.scales;
  product.span = args.span;
  product.sums = args.sums;
  multiply(product);
}

}  // namespace

Pieces float_registers_avx512(int64_t m) {
  if (m == 1) return {kOneRowPanels, 1, 0, XOrder::floats, Correction::span, nullptr, multiply_panels};
  return {1, kRegisterRows, 0, XOrder::floats, Correction::span, nullptr, multiply_registers};
}
Pieces float_panel_avx512() { return {2, kPanelRowsOfX, 4, XOrder::floats, Correction::span, decode, multiply_panel}; }
Pieces bf16_panel_dot() {
  return {2,   kPairDotRows, 2, XOrder::bf16_pairs, Correction::span, decode_bf16, multiply_decoded<multiply_pairs_dot>,
          true};
}
Pieces bf16_panel_amx() {
  return {
      2,    kAmxRowsOfX,  2, XOrder::bf16_lines, Correction::span, decode_bf16, multiply_decoded<multiply_pairs_amx>,
      true, release_tiles};
}

}  // namespace gearshift

#endif
