// Exact activations by dots of bf16 pairs, weights decoded in registers: nibbles become bf16 through a permutation of
// words, two of a row at a time. Values of codes enter without their scales, because the instruction takes denormals as
// zero and not every product with a scale is exact in bf16.
#include "kernel/cpu/stage/pair_words.h"
#include "kernel/cpu/stage/pieces.h"
#include "kernel/cpu/stage/stored_scales.h"
#include "kernel/cpu/stage/with_rows.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

namespace {

// 12 x 2 sums of products, two vectors of weights, two of codes, the table, one of x: 30 of 32 registers; scaled sums
// stay in memory. vdpbf16ps takes six cycles, two start in each: twelve sums keep both units busy.
constexpr int kRowsOfX = 12;

// As an instruction: compilers copy the tied accumulator of the intrinsic around.
GEARSHIFT_BF16 inline __attribute__((always_inline)) void dot2(__m512& sum, __m512i weights, __m512i x) {
  asm("vdpbf16ps %2,%1,%0" : "+v"(sum) : "v"(weights), "v"(x));
}

// Codes of two panels against W rows of x.
template <int W, StoredScales Scales, bool Zeros>
GEARSHIFT_BF16 void pairs(const ProductArgs& args) {
  const PairWords<Zeros> values(*args.table);
  PanelStreams<2> streams(args);
  const auto* x = static_cast<const int32_t*>(args.x);
  const int64_t octets_of_span = args.span / 8, ahead = args.ahead;
  int64_t octets = args.columns / 8;
  for (int64_t span = 0; octets > 0; ++span, octets -= octets_of_span) {
    __m512 dot[W][2];
#pragma GCC unroll 12
    for (int m = 0; m < W; ++m) dot[m][0] = dot[m][1] = _mm512_setzero_ps();
    __m512i offset[2] = {};
    if constexpr (Zeros) {
#pragma GCC unroll 2
      for (int p = 0; p < 2; ++p) {
        const __m128i points = _mm_loadu_si128(reinterpret_cast<const __m128i*>(streams.zeros[p] + 16 * span));
        offset[p] = values.offset(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(points)));
      }
    }
    for (int64_t octet = octets < octets_of_span ? octets : octets_of_span; octet > 0; --octet) {
      __m512i codes[2];
#pragma GCC unroll 2
      for (int p = 0; p < 2; ++p) {
        prefetch_line(streams.codes[p] + ahead);
        codes[p] = _mm512_loadu_si512(streams.codes[p]);
        streams.codes[p] += 64;
      }
#pragma GCC unroll 4
      for (int pair = 0; pair < 4; ++pair, x += W) {
        __m512i weights[2];
#pragma GCC unroll 2
        for (int p = 0; p < 2; ++p) {
          weights[p] = values(codes[p], offset[p]);
          codes[p] = _mm512_srli_epi16(codes[p], 4);
        }
#pragma GCC unroll 12
        for (int m = 0; m < W; ++m) {
          const __m512i two = _mm512_set1_epi32(x[m]);
          dot2(dot[m][0], weights[0], two);
          dot2(dot[m][1], weights[1], two);
        }
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p) {
      const __m512 scale = streams.scale<Scales>(p, args);
#pragma GCC unroll 12
      for (int m = 0; m < W; ++m) {
        float* sum = args.sums + 16 * (2 * m + p);
        _mm512_storeu_ps(sum, _mm512_fmadd_ps(dot[m][p], scale, _mm512_loadu_ps(sum)));
      }
    }
  }
}

template <bool Zeros>
void multiply_pairs(const ProductArgs& args) {
  with_rows<kRowsOfX>(args.w, [&]<int W>() {
    switch (args.stored_type) {
      case DType::f8_e4m3:
        return pairs<W, StoredScales::e4m3, Zeros>(args);
      case DType::f8_e8m0:
        return pairs<W, StoredScales::e8m0, Zeros>(args);
      default:
        return pairs<W, StoredScales::floats, Zeros>(args);
    }
  });
}

void multiply(const ProductArgs& args) {
  args.stored_zeros != nullptr ? multiply_pairs<true>(args) : multiply_pairs<false>(args);
}

}  // namespace

Pieces bf16_registers() {
  Pieces pieces{2, kRowsOfX, 0, XOrder::bf16_pairs, Correction::span, nullptr, multiply};
  pieces.stored_scales = true;
  return pieces;
}

}  // namespace gearshift

#endif
