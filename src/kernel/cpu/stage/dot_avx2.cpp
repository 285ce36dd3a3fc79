// Integer dots in 256 bits: vpmaddubsw multiplies unsigned codes of weights with signed codes of x and adds pairs.
//
// A unit of at most 32 columns is summed in int16: each of its two lanes per row collects 16 products. Codes of weights
// reach 24 with |x| <= 12 (2 * e2m1), or 15 with int8 x: 16 * 24 * 12 = 4608 and 16 * 15 * 128 = 30720 both fit, and so
// does what is left after the correction. Then vpmaddwd joins the lanes, and the unit is scaled: every version gives
// the same bits as long as a scale holds for 32 columns or fewer.
#include "kernel/cpu/stage/pieces.h"
#include "kernel/cpu/stage/with_rows.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

namespace {

constexpr int kMostRows = 4;

GEARSHIFT_AVX2 inline __m256i load(const uint8_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

// Products of two pairs of every four columns, added to the two int16 sums of each row. As instructions: compilers
// reorder these sums, make all products first, and then have no registers for them.
GEARSHIFT_AVX2 inline void dot4(__m256i& sum, __m256i weights, __m256i x) {
  __m256i products;
  asm("vpmaddubsw %3,%2,%1\n\tvpaddw %1,%0,%0" : "+x"(sum), "=&x"(products) : "x"(weights), "x"(x));
}

// `Octets` * 8 columns are one unit. Registers: weights are nibbles; else bytes [column / 4][16 rows][4].
template <int W, int Octets, bool Registers, bool XScales>
GEARSHIFT_AVX2 void units(const ProductArgs& args) {
  const __m256i table =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(args.table->biased.data())));
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i one = _mm256_set1_epi16(1);
  const uint8_t* weights = args.weights;
  const auto* x = static_cast<const int32_t*>(args.x);
  const int32_t* correction = args.correction;
  const float* x_scales = args.x_scales;
  const int shift = shift_of(args.span);
  for (int64_t k = 0; k < args.columns; k += 8 * Octets) {
    __m256i sum[W][2];
#pragma GCC unroll 4
    for (int m = 0; m < W; ++m) sum[m][0] = sum[m][1] = _mm256_set1_epi32(correction[m]);
    if constexpr (Registers) prefetch_ahead<64 * Octets>(weights);
#pragma GCC unroll 4
    for (int octet = 0; octet < Octets; ++octet) {
#pragma GCC unroll 2
      for (int step = 0; step < 2; ++step) {
        // Both halves of the rows beside each other, so that a broadcast of x is used twice and then gone.
        __m256i codes[2];
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          if constexpr (Registers) {
            const __m256i both = load(weights + 32 * half);
            codes[half] =
                _mm256_shuffle_epi8(table, _mm256_and_si256(step == 0 ? both : _mm256_srli_epi16(both, 4), nibble));
          } else {
            codes[half] = load(weights + 64 * step + 32 * half);
          }
        }
#pragma GCC unroll 4
        for (int m = 0; m < W; ++m) {
          const __m256i value = _mm256_set1_epi32(x[step * W + m]);
          dot4(sum[m][0], codes[0], value);
          dot4(sum[m][1], codes[1], value);
        }
      }
      weights += Registers ? 64 : 128;
      x += 2 * W;
    }
    const float* scales = args.scales + (k >> shift) * 16;
    const __m256 scale[2] = {_mm256_loadu_ps(scales), _mm256_loadu_ps(scales + 8)};
#pragma GCC unroll 4
    for (int m = 0; m < W; ++m) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        float* to = args.sums + 16 * m + 8 * half;
        __m256 value = _mm256_cvtepi32_ps(_mm256_madd_epi16(sum[m][half], one));
        if constexpr (XScales) value = _mm256_mul_ps(value, _mm256_set1_ps(x_scales[m]));
        _mm256_storeu_ps(to, _mm256_fmadd_ps(value, scale[half], _mm256_loadu_ps(to)));
      }
    }
    correction += W;
    if constexpr (XScales) x_scales += W;
  }
}

// The same for one row of x and the codes of four panels.
template <int Octets, bool XScales>
GEARSHIFT_AVX2 void units_of_panels(const ProductArgs& args) {
  const __m256i table =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(args.table->biased.data())));
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i one = _mm256_set1_epi16(1);
  CodesOfPanels codes(args);
  const auto* x = static_cast<const int32_t*>(args.x);
  const int shift = shift_of(args.span);
  int64_t unit = 0;
  for (int64_t k = 0; k < args.columns; k += 8 * Octets, ++unit) {
    __m256i sum[kOneRowPanels][2];
#pragma GCC unroll 4
    for (int p = 0; p < kOneRowPanels; ++p) {
      sum[p][0] = sum[p][1] = _mm256_set1_epi32(args.correction[unit]);
      prefetch_ahead<64 * Octets, kNearBytes>(codes.at[p]);
    }
    for (int octet = 0; octet < Octets; ++octet, x += 2) {
      const __m256i first = _mm256_set1_epi32(x[0]), second = _mm256_set1_epi32(x[1]);
#pragma GCC unroll 4
      for (int p = 0; p < kOneRowPanels; ++p) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          const __m256i both = load(codes.at[p] + 32 * half);
          dot4(sum[p][half], _mm256_shuffle_epi8(table, _mm256_and_si256(both, nibble)), first);
          dot4(sum[p][half], _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble)), second);
        }
        codes.at[p] += 64;
      }
    }
    const float* scales = args.scales + (k >> shift) * 16 * kOneRowPanels;
#pragma GCC unroll 4
    for (int p = 0; p < kOneRowPanels; ++p) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const int at = 16 * p + 8 * half;
        __m256 value = _mm256_cvtepi32_ps(_mm256_madd_epi16(sum[p][half], one));
        if constexpr (XScales) value = _mm256_mul_ps(value, _mm256_set1_ps(args.x_scales[unit]));
        const __m256 total = _mm256_fmadd_ps(value, _mm256_loadu_ps(scales + at), _mm256_loadu_ps(args.sums + at));
        _mm256_storeu_ps(args.sums + at, total);
      }
    }
  }
}

void multiply_panels(const ProductArgs& args) {
  if (args.span == 16) return units_of_panels<2, true>(args);
  args.x_scales != nullptr ? units_of_panels<4, true>(args) : units_of_panels<4, false>(args);
}

template <bool Registers>
void multiply(const ProductArgs& args) {
  with_rows<kMostRows>(args.w, [&]<int W>() {
    if (args.span == 16) return units<W, 2, Registers, true>(args);
    if (args.x_scales != nullptr) return units<W, 4, Registers, true>(args);
    units<W, 4, Registers, false>(args);
  });
}

GEARSHIFT_AVX2 void decode(const DecodeArgs& args) {
  const __m256i table =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(args.table->biased.data())));
  const __m256i nibble = _mm256_set1_epi8(15);
  uint8_t* to = args.panel;
  const uint8_t* end = args.codes + args.columns * 8;
  for (const uint8_t* at = args.codes; at != end; at += 64, to += 128) {
    prefetch_ahead<64>(at);
#pragma GCC unroll 2
    for (int half = 0; half < 64; half += 32) {
      const __m256i codes = load(at + half);
      const __m256i low = _mm256_shuffle_epi8(table, _mm256_and_si256(codes, nibble));
      const __m256i high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble));
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + half), low);
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + 64 + half), high);
    }
  }
}

}  // namespace

Pieces dot_registers_avx2(int64_t m) {
  if (m == 1) return {kOneRowPanels, 1, 0, XOrder::dwords, Correction::halfwords, nullptr, multiply_panels};
  return {1, kMostRows, 0, XOrder::dwords, Correction::halfwords, nullptr, multiply<true>};
}
Pieces dot_panel_avx2() { return {1, kMostRows, 1, XOrder::dwords, Correction::halfwords, decode, multiply<false>}; }

}  // namespace gearshift

#endif
