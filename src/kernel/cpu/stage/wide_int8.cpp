// int8 weights with int8 or wider activations: exact int32 sums of (q + 128) * x; the caller takes 128 * sum(x) off.
#include "kernel/cpu/stage/wide.h"
#include "kernel/cpu/stage/with_rows.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

namespace {

// ---- AVX2: both sides as int16, pairs added exactly by vpmaddwd; vpmaddubsw would saturate
// ---------------------------

// 4 x 2 sums, two vectors of weights, one of x, one product: 12 of 16 registers.
constexpr int kMaddRows = 4;

// As an instruction: compilers copy tied sums around, a move for every addition.
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void add_to(__m256i& sum, __m256i products) {
  asm("vpaddd %1,%0,%0" : "+x"(sum) : "x"(products));
}

// Eight rows at a time: sums of columns 0 1 | 2 3 of four rows in each of two vectors.
template <int W>
GEARSHIFT_AVX2 void multiply_madd(const WideArgs& args) {
  for (int half = 0; half < 2; ++half) {
    const uint8_t* weights = args.weights + 32 * half;
    const auto* x = static_cast<const int64_t*>(args.x);
    __m256i sum[W][2];
#pragma GCC unroll 4
    for (int m = 0; m < W; ++m) sum[m][0] = sum[m][1] = _mm256_setzero_si256();
    for (int64_t column = 0; column < args.columns; column += 4, weights += 64, x += W) {
      prefetch_ahead<64>(weights);
      const __m256i low = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weights)));
      const __m256i high = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + 16)));
#pragma GCC unroll 4
      for (int m = 0; m < W; ++m) {
        const __m256i four = _mm256_set1_epi64x(x[m]);
        add_to(sum[m][0], _mm256_madd_epi16(low, four));
        add_to(sum[m][1], _mm256_madd_epi16(high, four));
      }
    }
#pragma GCC unroll 4
    for (int m = 0; m < W; ++m) {
      auto* to = reinterpret_cast<__m256i*>(static_cast<int32_t*>(args.sums) + kWideRows * m + 8 * half);
      const __m256i rows = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum[m][0], sum[m][1]), 0xd8);
      _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), rows));
    }
  }
}

void multiply_avx2(const WideArgs& args) {
  with_rows<kMaddRows>(args.w, [&]<int W>() { multiply_madd<W>(args); });
}

// ---- AVX-512 VNNI ---------------------------------------------------------------------------------------------------

// 14 x 2 sums, two vectors of weights, one of x: 31 of 32 registers.
constexpr int kDotRows = 14;

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
  return pieces;
}

WidePieces wide_int8_vnni() {
  WidePieces pieces;
  pieces.panels = 2;
  pieces.tile_rows = kDotRows;
  pieces.x = WideX::int8_fours;
  pieces.integers = true;
  pieces.multiply = multiply_vnni;
  return pieces;
}

}  // namespace gearshift

#endif
