// int8 weights with int8 or wider activations: exact int32 sums of (q + 128) * x; the caller takes 128 * sum(x) off.
#include "kernel/cpu/stage/wide.h"
#include "kernel/cpu/stage/with_rows.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

namespace {

// ---- AVX2: both sides as int16, pairs added exactly by vpmaddwd; vpmaddubsw would saturate
// ---------------------------

// 6 x 2 sums, two vectors of weights, one of x, one product: all 16 registers.
constexpr int kMaddRows = 6;
// 512 columns of 16 rows are 8 KiB, and of six rows of x 6 KiB.
constexpr int64_t kMaddBlock = 512;

// As instructions: compilers copy tied sums around, a move for every addition, and make all products first.
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void add_products(__m256i& sum, __m256i weights, __m256i x) {
  __m256i products;
  asm("vpmaddwd %3,%2,%1\n\tvpaddd %1,%0,%0" : "+x"(sum), "=&x"(products) : "x"(x), "x"(weights));
}

// Four columns of four rows, 16 bits each.
GEARSHIFT_AVX2 inline __attribute__((always_inline)) __m256i words_of(const uint8_t* weights) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weights)));
}

// 4 * Fours rows at a time: sums of columns 0 1 | 2 3 of four rows in each vector.
template <int W, int Fours>
GEARSHIFT_AVX2 void multiply_madd(const WideArgs& args) {
  for (int first = 0; first < 4; first += Fours) {
    const uint8_t* weights = args.weights + 16 * first;
    const auto* x = static_cast<const int64_t*>(args.x);
    __m256i sum[W][Fours];
#pragma GCC unroll 6
    for (int m = 0; m < W; ++m) {
#pragma GCC unroll 4
      for (int four = 0; four < Fours; ++four) sum[m][four] = _mm256_setzero_si256();
    }
    for (int64_t column = 0; column < args.columns; column += 4, weights += 64, x += W) {
      if (first == 0) prefetch_ahead<64>(weights);
      __m256i codes[Fours];
#pragma GCC unroll 4
      for (int four = 0; four < Fours; ++four) codes[four] = words_of(weights + 16 * four);
#pragma GCC unroll 6
      for (int m = 0; m < W; ++m) {
        const __m256i value = _mm256_set1_epi64x(x[m]);
#pragma GCC unroll 4
        for (int four = 0; four < Fours; ++four) add_products(sum[m][four], codes[four], value);
      }
    }
#pragma GCC unroll 6
    for (int m = 0; m < W; ++m) {
#pragma GCC unroll 2
      for (int pair = 0; pair < Fours; pair += 2) {
        int32_t* out = static_cast<int32_t*>(args.sums) + kWideRows * m + 4 * (first + pair);
        auto* to = reinterpret_cast<__m256i*>(out);
        const __m256i rows = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum[m][pair], sum[m][pair + 1]), 0xd8);
        _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), rows));
      }
    }
  }
}

// One pass over the codes for one row of x or two, two passes for more of them.
void multiply_avx2(const WideArgs& args) {
  with_rows<kMaddRows>(args.w, [&]<int W>() { multiply_madd<W, W <= 2 ? 4 : 2>(args); });
}

// One row of x and the codes of two panels.
constexpr int kMaddPanels = 2;

GEARSHIFT_AVX2 void multiply_madd_panels(const WideArgs& args) {
  const uint8_t* weights[kMaddPanels] = {args.weights, args.weights + (args.panels > 1 ? args.stride : 0)};
  const auto* x = static_cast<const int64_t*>(args.x);
  __m256i sum[kMaddPanels][4];
#pragma GCC unroll 2
  for (int p = 0; p < kMaddPanels; ++p) {
#pragma GCC unroll 4
    for (int four = 0; four < 4; ++four) sum[p][four] = _mm256_setzero_si256();
  }
  for (int64_t column = 0; column < args.columns; column += 4, ++x) {
    const __m256i value = _mm256_set1_epi64x(*x);
#pragma GCC unroll 2
    for (int p = 0; p < kMaddPanels; ++p) {
      prefetch_ahead<64, 2 * kNearBytes>(weights[p]);
#pragma GCC unroll 4
      for (int four = 0; four < 4; ++four) add_products(sum[p][four], words_of(weights[p] + 16 * four), value);
      weights[p] += 64;
    }
  }
#pragma GCC unroll 2
  for (int p = 0; p < kMaddPanels; ++p) {
#pragma GCC unroll 2
    for (int pair = 0; pair < 4; pair += 2) {
      auto* to = reinterpret_cast<__m256i*>(static_cast<int32_t*>(args.sums) + kWideRows * p + 4 * pair);
      const __m256i rows = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum[p][pair], sum[p][pair + 1]), 0xd8);
      _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), rows));
    }
  }
}

// ---- AVX-512 VNNI ---------------------------------------------------------------------------------------------------

// 14 x 2 sums, two vectors of weights, one of x: 31 of 32 registers.
constexpr int kDotRows = 14;
// 512 columns of two panels are 16 KiB, and of 14 rows of x 7 KiB.
constexpr int64_t kDotBlock = 512;

GEARSHIFT_VNNI inline __attribute__((always_inline)) void dot4(__m512i& sum, __m512i weights, __m512i x) {
  asm("vpdpbusd %2,%1,%0" : "+v"(sum) : "v"(weights), "v"(x));
}

template <int W>
GEARSHIFT_VNNI void multiply_dot(const WideArgs& args) {
  const uint8_t* weights = args.weights;
  const int64_t stride = args.stride;
  const auto* x = static_cast<const int32_t*>(args.x);
  __m512i sum[W][2];
#pragma GCC unroll 14
  for (int m = 0; m < W; ++m) sum[m][0] = sum[m][1] = _mm512_setzero_si512();
  for (int64_t column = 0; column < args.columns; column += 8, weights += 128, x += 2 * W) {
    prefetch_ahead<128>(weights);
    prefetch_ahead<128>(weights + stride);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m512i first = _mm512_loadu_si512(weights + 64 * i);
      const __m512i second = _mm512_loadu_si512(weights + stride + 64 * i);
#pragma GCC unroll 14
      for (int m = 0; m < W; ++m) {
        const __m512i four = _mm512_set1_epi32(x[i * W + m]);
        dot4(sum[m][0], first, four);
        dot4(sum[m][1], second, four);
      }
    }
  }
#pragma GCC unroll 14
  for (int m = 0; m < W; ++m) {
    int32_t* to = static_cast<int32_t*>(args.sums) + 2 * kWideRows * m;
    _mm512_storeu_si512(to, _mm512_add_epi32(_mm512_loadu_si512(to), sum[m][0]));
    _mm512_storeu_si512(to + kWideRows, _mm512_add_epi32(_mm512_loadu_si512(to + kWideRows), sum[m][1]));
  }
}

void multiply_vnni(const WideArgs& args) {
  with_rows<kDotRows>(args.w, [&]<int W>() { multiply_dot<W>(args); });
}

}  // namespace

WidePieces wide_int8_avx2() {
  WidePieces pieces;
  pieces.tile_rows = kMaddRows;
  pieces.x = WideX::int16_fours;
  pieces.integers = true;
  pieces.multiply = multiply_avx2;
  pieces.multiply_one = multiply_madd_panels;
  pieces.one_panels = kMaddPanels;
  pieces.block = kMaddBlock;
  return pieces;
}

WidePieces wide_int8_vnni() {
  WidePieces pieces;
  pieces.panels = 2;
  pieces.tile_rows = kDotRows;
  pieces.x = WideX::int8_fours;
  pieces.integers = true;
  pieces.multiply = multiply_vnni;
  pieces.block = kDotBlock;
  return pieces;
}

}  // namespace gearshift

#endif
