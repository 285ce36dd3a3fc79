// Integer dots in 512 bits: vpdpbusd adds four products of unsigned codes of weights and signed codes of x to int32.
#include "kernel/cpu/stage/pieces.h"
#include "kernel/cpu/stage/stored_scales.h"
#include "kernel/cpu/stage/with_rows.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

namespace {

// Two panels side by side share what is loaded of x: 6 x 2 sums of dots, as many scaled sums, four vectors of weights,
// table, mask and one of x: 31 of 32 registers.
constexpr int kRegisterRows = 6;
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

// What the low nibbles of bytes stand for. A shuffle takes bytes with the sign bit set for zeros, so its indices have
// to be masked; a permutation of 64 bytes, which hold the table four times, looks at the six lowest bits of an index.
struct Shuffled {
  __m512i table, nibble;
  GEARSHIFT_VNNI explicit Shuffled(const NibbleTable& nibbles)
      : table(_mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(nibbles.biased.data())))),
        nibble(_mm512_set1_epi8(15)) {}
  GEARSHIFT_VNNI inline __attribute__((always_inline)) __m512i operator()(__m512i codes) const {
    return _mm512_shuffle_epi8(table, _mm512_and_si512(codes, nibble));
  }
};
struct Permuted {
  __m512i table;
  GEARSHIFT_VNNI explicit Permuted(const NibbleTable& nibbles)
      : table(_mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(nibbles.biased.data())))) {}
  GEARSHIFT_VNNI inline __attribute__((always_inline)) __m512i operator()(__m512i codes) const {
    __m512i out;
    asm("vpermb %2,%1,%0" : "=v"(out) : "v"(codes), "v"(table));
    return out;
  }
};

// Codes of two panels against W rows of x, scales as they are stored.
template <int W, StoredScales Scales, class Nibbles>
GEARSHIFT_VNNI void registers(const ProductArgs& args) {
  constexpr bool kXScales = Scales == StoredScales::e4m3 || Scales == StoredScales::e8m0;
  const Nibbles values(*args.table);
  PanelStreams<2> streams(args);
  const auto* x = static_cast<const int32_t*>(args.x);
  const int64_t octets_of_span = args.span / 8, ahead = args.ahead;
  __m512 sum[W][2];
#pragma GCC unroll 6
  for (int m = 0; m < W; ++m) {
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p) sum[m][p] = _mm512_loadu_ps(args.sums + 16 * (2 * m + p));
  }
  int64_t octets = args.columns / 8;
  for (int64_t span = 0; octets > 0; ++span, octets -= octets_of_span) {
    __m512i dot[W][2];
#pragma GCC unroll 6
    for (int m = 0; m < W; ++m) {
#pragma GCC unroll 2
      for (int p = 0; p < 2; ++p) dot[m][p] = _mm512_set1_epi32(args.correction[span * W + m]);
    }
    for (int64_t pair = (octets < octets_of_span ? octets : octets_of_span) / 2; pair > 0; --pair) {
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i, x += 2 * W) {
        __m512i low[2], high[2];
#pragma GCC unroll 2
        for (int p = 0; p < 2; ++p) {
          prefetch_line(streams.codes[p] + ahead);
          const __m512i codes = _mm512_loadu_si512(streams.codes[p]);
          low[p] = values(codes);
          high[p] = values(_mm512_srli_epi16(codes, 4));
          streams.codes[p] += 64;
        }
#pragma GCC unroll 6
        for (int m = 0; m < W; ++m) {
          const __m512i first = _mm512_set1_epi32(x[m]), second = _mm512_set1_epi32(x[W + m]);
          dot4(dot[m][0], low[0], first);
          dot4(dot[m][1], low[1], first);
          dot4(dot[m][0], high[0], second);
          dot4(dot[m][1], high[1], second);
        }
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p) {
      const __m512 scale = streams.scale<Scales>(p, args);
#pragma GCC unroll 6
      for (int m = 0; m < W; ++m) sum[m][p] = scaled<kXScales>(sum[m][p], dot[m][p], args, span * W + m, scale);
    }
  }
#pragma GCC unroll 6
  for (int m = 0; m < W; ++m) {
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p) _mm512_storeu_ps(args.sums + 16 * (2 * m + p), sum[m][p]);
  }
}

template <class Nibbles>
void multiply_registers(const ProductArgs& args) {
  with_rows<kRegisterRows>(args.w, [&]<int W>() {
    switch (args.stored_type) {
      case DType::f8_e4m3:
        return registers<W, StoredScales::e4m3, Nibbles>(args);
      case DType::f8_e8m0:
        return registers<W, StoredScales::e8m0, Nibbles>(args);
      default:
        return registers<W, StoredScales::floats, Nibbles>(args);
    }
  });
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

Pieces dot_registers_vnni(bool vbmi) {
  Pieces pieces{2, kRegisterRows, 0, XOrder::dwords, Correction::span, nullptr, multiply_registers<Shuffled>};
  if (vbmi) pieces.multiply = multiply_registers<Permuted>;
  pieces.stored_scales = true;
  return pieces;
}
Pieces dot_panel_vnni() { return {2, kPanelRowsOfX, 1, XOrder::dwords, Correction::span, decode, multiply_panel}; }

}  // namespace gearshift

#endif
