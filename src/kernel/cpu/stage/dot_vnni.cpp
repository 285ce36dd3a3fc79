// Integer dots in 512 bits: vpdpbusd adds four products of unsigned codes of weights and signed codes of x to int32.
#include "kernel/cpu/stage/pieces.h"
#include "kernel/cpu/stage/with_rows.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

namespace {

constexpr int kRegisterRows = 4;
// 6 x 2 sums of dots, as many scaled sums, two vectors of weights, one of x: 27 of 32 registers.
constexpr int kPanelRowsOfX = 6;

// As an instruction: compilers copy the tied accumulator of the intrinsic around.
GEARSHIFT_VNNI inline void dot4(__m512i& sum, __m512i weights, __m512i x) {
  asm("vpdpbusd %2,%1,%0" : "+v"(sum) : "v"(weights), "v"(x));
}

// value * scale of x * scale of weights, added to `to`.
template <bool XScales>
GEARSHIFT_VNNI inline __m512 scaled(__m512 to, __m512i dot, const ProductArgs& args, int64_t at, __m512 scale) {
  __m512 value = _mm512_cvtepi32_ps(dot);
  if constexpr (XScales) value = _mm512_mul_ps(value, _mm512_set1_ps(args.x_scales[at]));
  return _mm512_fmadd_ps(value, scale, to);
}

template <int W, bool XScales>
GEARSHIFT_VNNI void registers(const ProductArgs& args) {
  const __m512i table =
      _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(args.table->biased.data())));
  const __m512i nibble = _mm512_set1_epi8(15);
  const uint8_t* weights = args.weights;
  const auto* x = static_cast<const int32_t*>(args.x);
  const int64_t octets_of_span = args.span / 8;
  __m512 sum[W];
#pragma GCC unroll 4
  for (int m = 0; m < W; ++m) sum[m] = _mm512_loadu_ps(args.sums + 16 * m);
  int64_t octets = args.columns / 8;
  for (int64_t span = 0; octets > 0; ++span, octets -= octets_of_span) {
    __m512i dot[W];
#pragma GCC unroll 4
    for (int m = 0; m < W; ++m) dot[m] = _mm512_set1_epi32(args.correction[span * W + m]);
    for (int64_t pair = (octets < octets_of_span ? octets : octets_of_span) / 2; pair > 0; --pair) {
      prefetch_ahead<128>(weights);
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i, weights += 64, x += 2 * W) {
        const __m512i codes = _mm512_loadu_si512(weights);
        const __m512i low = _mm512_shuffle_epi8(table, _mm512_and_si512(codes, nibble));
        const __m512i high = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(codes, 4), nibble));
#pragma GCC unroll 4
        for (int m = 0; m < W; ++m) {
          dot4(dot[m], low, _mm512_set1_epi32(x[m]));
          dot4(dot[m], high, _mm512_set1_epi32(x[W + m]));
        }
      }
    }
    const __m512 scale = _mm512_loadu_ps(args.scales + span * 16);
#pragma GCC unroll 4
    for (int m = 0; m < W; ++m) sum[m] = scaled<XScales>(sum[m], dot[m], args, span * W + m, scale);
  }
#pragma GCC unroll 4
  for (int m = 0; m < W; ++m) _mm512_storeu_ps(args.sums + 16 * m, sum[m]);
}

// The same for one row of x and the codes of four panels.
template <bool XScales>
GEARSHIFT_VNNI void registers_of_panels(const ProductArgs& args) {
  const __m512i table =
      _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(args.table->biased.data())));
  const __m512i nibble = _mm512_set1_epi8(15);
  CodesOfPanels codes(args);
  const auto* x = static_cast<const int32_t*>(args.x);
  __m512 sum[kOneRowPanels];
#pragma GCC unroll 4
  for (int p = 0; p < kOneRowPanels; ++p) sum[p] = _mm512_loadu_ps(args.sums + 16 * p);
  const int64_t octets_of_span = args.span / 8;
  int64_t octets = args.columns / 8;
  for (int64_t span = 0; octets > 0; ++span, octets -= octets_of_span) {
    __m512i dot[kOneRowPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kOneRowPanels; ++p) dot[p] = _mm512_set1_epi32(args.correction[span]);
    for (int64_t octet = octets < octets_of_span ? octets : octets_of_span; octet > 0; --octet, x += 2) {
      const __m512i first = _mm512_set1_epi32(x[0]), second = _mm512_set1_epi32(x[1]);
#pragma GCC unroll 4
      for (int p = 0; p < kOneRowPanels; ++p) {
        prefetch_ahead<64, kNearBytes>(codes.at[p]);
        const __m512i both = _mm512_loadu_si512(codes.at[p]);
        dot4(dot[p], _mm512_shuffle_epi8(table, _mm512_and_si512(both, nibble)), first);
        dot4(dot[p], _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble)), second);
        codes.at[p] += 64;
      }
    }
#pragma GCC unroll 4
    for (int p = 0; p < kOneRowPanels; ++p) {
      const __m512 scale = _mm512_loadu_ps(args.scales + (span * kOneRowPanels + p) * 16);
      sum[p] = scaled<XScales>(sum[p], dot[p], args, span, scale);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kOneRowPanels; ++p) _mm512_storeu_ps(args.sums + 16 * p, sum[p]);
}

void multiply_panels(const ProductArgs& args) {
  args.x_scales != nullptr ? registers_of_panels<true>(args) : registers_of_panels<false>(args);
}

void multiply_registers(const ProductArgs& args) {
  with_rows<kRegisterRows>(
      args.w, [&]<int W>() { args.x_scales != nullptr ? registers<W, true>(args) : registers<W, false>(args); });
}

// The panel: bytes [column / 4][32 rows][4].
template <int W, bool XScales>
GEARSHIFT_VNNI void panel(const ProductArgs& args) {
  const uint8_t* weights = args.weights;
  const auto* x = static_cast<const int32_t*>(args.x);
  const int64_t steps_of_span = args.span / 4;
  __m512 sum[W][2];
#pragma GCC unroll 6
  for (int m = 0; m < W; ++m) {
    sum[m][0] = _mm512_loadu_ps(args.sums + 32 * m);
    sum[m][1] = _mm512_loadu_ps(args.sums + 32 * m + 16);
  }
  int64_t steps = args.columns / 4;
  for (int64_t span = 0; steps > 0; ++span, steps -= steps_of_span) {
    __m512i dot[W][2];
#pragma GCC unroll 6
    for (int m = 0; m < W; ++m) dot[m][0] = dot[m][1] = _mm512_set1_epi32(args.correction[span * W + m]);
    for (int64_t four = (steps < steps_of_span ? steps : steps_of_span) / 4; four > 0; --four) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i, weights += 128, x += W) {
        const __m512i first = _mm512_load_si512(weights);
        const __m512i second = _mm512_load_si512(weights + 64);
#pragma GCC unroll 6
        for (int m = 0; m < W; ++m) {
          const __m512i value = _mm512_set1_epi32(x[m]);
          dot4(dot[m][0], first, value);
          dot4(dot[m][1], second, value);
        }
      }
    }
    const __m512 first = _mm512_loadu_ps(args.scales + span * 32);
    const __m512 second = _mm512_loadu_ps(args.scales + span * 32 + 16);
#pragma GCC unroll 6
    for (int m = 0; m < W; ++m) {
      sum[m][0] = scaled<XScales>(sum[m][0], dot[m][0], args, span * W + m, first);
      sum[m][1] = scaled<XScales>(sum[m][1], dot[m][1], args, span * W + m, second);
    }
  }
#pragma GCC unroll 6
  for (int m = 0; m < W; ++m) {
    _mm512_storeu_ps(args.sums + 32 * m, sum[m][0]);
    _mm512_storeu_ps(args.sums + 32 * m + 16, sum[m][1]);
  }
}

void multiply_panel(const ProductArgs& args) {
  with_rows<kPanelRowsOfX>(args.w,
                           [&]<int W>() { args.x_scales != nullptr ? panel<W, true>(args) : panel<W, false>(args); });
}

GEARSHIFT_VNNI void decode(const DecodeArgs& args) {
  const __m512i table =
      _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(args.table->biased.data())));
  const __m512i nibble = _mm512_set1_epi8(15);
  for (int64_t p = 0; p < args.panels; ++p) {
    const uint8_t* at = args.codes + p * args.panel_stride;
    uint8_t* to = args.panel + 64 * p;
    for (const uint8_t* end = at + args.columns * 8; at != end; at += 64, to += 256) {
      prefetch_ahead<64>(at);
      const __m512i codes = _mm512_loadu_si512(at);
      _mm512_store_si512(to, _mm512_shuffle_epi8(table, _mm512_and_si512(codes, nibble)));
      _mm512_store_si512(to + 128, _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(codes, 4), nibble)));
    }
  }
}

}  // namespace

Pieces dot_registers_vnni(int64_t m) {
  if (m == 1) return {kOneRowPanels, 1, 0, XOrder::dwords, Correction::span, nullptr, multiply_panels};
  return {1, kRegisterRows, 0, XOrder::dwords, Correction::span, nullptr, multiply_registers};
}
Pieces dot_panel_vnni() { return {2, kPanelRowsOfX, 1, XOrder::dwords, Correction::span, decode, multiply_panel}; }

}  // namespace gearshift

#endif
