// bf16 and e4m3 weights against fp32 activations, with fused multiply-add.
//
// e4m3 is widened through fp16: sign and seven bits moved next to fp16's exponent are the value over 256, subnormals
// included, and the conversion instruction knows subnormals; `unit` makes up for the 256.
#include "kernel/cpu/stage/wide.h"
#include "kernel/cpu/stage/with_rows.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

namespace {

constexpr double kE4m3Unit = 256;

// ---- AVX2 -----------------------------------------------------------------------------------------------------------

// 6 x 2 sums, two vectors of weights, one of x: 15 of 16 registers.
constexpr int kRows256 = 6;

// Rows 0 to 7 and 8 to 15 of one column. bf16 columns come in pairs.
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void column_of_bf16(const uint8_t* at, bool odd, __m256 out[2]) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32 * half));
    const __m256i bits = odd ? _mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int32_t>(0xffff0000)))
                             : _mm256_slli_epi32(pairs, 16);
    out[half] = _mm256_castsi256_ps(bits);
  }
}

GEARSHIFT_AVX2 inline __attribute__((always_inline)) void column_of_e4m3(const uint8_t* at, __m256 out[2]) {
  const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  const __m256i halves = _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(static_cast<int16_t>(0xbf80)));
  out[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
  out[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
}

template <int W>
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void add_column(const __m256 weight[2], const float* x,
                                                                     __m256 sum[W][2]) {
#pragma GCC unroll 6
  for (int m = 0; m < W; ++m) {
    const __m256 value = _mm256_broadcast_ss(x + m);
    sum[m][0] = _mm256_fmadd_ps(weight[0], value, sum[m][0]);
    sum[m][1] = _mm256_fmadd_ps(weight[1], value, sum[m][1]);
  }
}

template <int W, WideCode code>
GEARSHIFT_AVX2 void multiply_256(const WideArgs& args) {
  constexpr int64_t kColumnBytes = code == WideCode::e4m3 ? 16 : 32;
  const bool scaled = args.scales != nullptr;
  const int64_t span = scaled ? args.span : args.columns;
  auto* sums = static_cast<float*>(args.sums);
  const uint8_t* weights = args.weights;
  const auto* x = static_cast<const float*>(args.x);
  for (int64_t first = 0, s = 0; first < args.columns; first += span, ++s) {
    __m256 sum[W][2];
#pragma GCC unroll 6
    for (int m = 0; m < W; ++m) {
      sum[m][0] = scaled ? _mm256_setzero_ps() : _mm256_loadu_ps(sums + 16 * m);
      sum[m][1] = scaled ? _mm256_setzero_ps() : _mm256_loadu_ps(sums + 16 * m + 8);
    }
    const int64_t count = args.columns - first < span ? args.columns - first : span;
    for (int64_t i = 0; i < count; i += 4, weights += 4 * kColumnBytes, x += 4 * W) {
      prefetch_ahead<4 * kColumnBytes>(weights);
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        __m256 weight[2];
        if constexpr (code == WideCode::e4m3) {
          column_of_e4m3(weights + 16 * c, weight);
        } else {
          column_of_bf16(weights + 64 * (c / 2), c % 2 == 1, weight);
        }
        add_column<W>(weight, x + c * W, sum);
      }
    }
#pragma GCC unroll 6
    for (int m = 0; m < W; ++m) {
      float* to = sums + 16 * m;
      if (!scaled) {
        _mm256_storeu_ps(to, sum[m][0]);
        _mm256_storeu_ps(to + 8, sum[m][1]);
        continue;
      }
      const __m256 x_scale = _mm256_set1_ps(args.x_scales == nullptr ? 1 : args.x_scales[s * W + m]);
      const float* scale = args.scales + 16 * s;
      _mm256_storeu_ps(to,
                       _mm256_fmadd_ps(_mm256_mul_ps(sum[m][0], x_scale), _mm256_loadu_ps(scale), _mm256_loadu_ps(to)));
      _mm256_storeu_ps(to + 8, _mm256_fmadd_ps(_mm256_mul_ps(sum[m][1], x_scale), _mm256_loadu_ps(scale + 8),
                                               _mm256_loadu_ps(to + 8)));
    }
  }
}

template <WideCode code>
void multiply_avx2(const WideArgs& args) {
  with_rows<kRows256>(args.w, [&]<int W>() { multiply_256<W, code>(args); });
}

// ---- AVX-512, and its dots of bf16 pairs
// ------------------------------------------------------------------------------

// 12 x 2 sums, four vectors of weights, one of x: 29 of 32 registers.
constexpr int kRows512 = 12;
// 14 x 2 sums, two vectors of weights, one of x: 31 of 32.
constexpr int kRowsDot = 14;

// Loads sums, or starts new ones for a span with scales of its own.
template <int W>
GEARSHIFT_AVX512 inline __attribute__((always_inline)) void start(const WideArgs& args, __m512 sum[W][2]) {
  const auto* sums = static_cast<const float*>(args.sums);
#pragma GCC unroll 14
  for (int m = 0; m < W; ++m) {
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p)
      sum[m][p] = args.scales != nullptr ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + 32 * m + 16 * p);
  }
}

template <int W>
GEARSHIFT_AVX512 inline __attribute__((always_inline)) void finish(const WideArgs& args, int64_t s,
                                                                   const __m512 sum[W][2]) {
  auto* sums = static_cast<float*>(args.sums);
#pragma GCC unroll 14
  for (int m = 0; m < W; ++m) {
    const __m512 x_scale = _mm512_set1_ps(args.x_scales == nullptr ? 1 : args.x_scales[s * W + m]);
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p) {
      float* to = sums + 32 * m + 16 * p;
      if (args.scales == nullptr) {
        _mm512_storeu_ps(to, sum[m][p]);
      } else {
        const __m512 scale = _mm512_loadu_ps(args.scales + 32 * s + 16 * p);
        _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_mul_ps(sum[m][p], x_scale), scale, _mm512_loadu_ps(to)));
      }
    }
  }
}

// Two columns of 16 rows.
GEARSHIFT_AVX512 inline __attribute__((always_inline)) void columns_of_e4m3(const uint8_t* at, __m512 out[2]) {
  const __m512i words = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  const __m512i halves = _mm512_and_si512(_mm512_slli_epi16(words, 7), _mm512_set1_epi16(static_cast<int16_t>(0xbf80)));
  out[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
  out[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
}

GEARSHIFT_AVX512 inline __attribute__((always_inline)) void columns_of_bf16(const uint8_t* at, __m512 out[2]) {
  const __m512i pairs = _mm512_loadu_si512(at);
  out[0] = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
  out[1] = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int32_t>(0xffff0000))));
}

template <int W, WideCode code>
GEARSHIFT_AVX512 void multiply_512(const WideArgs& args) {
  constexpr int64_t kPairBytes = code == WideCode::e4m3 ? 32 : 64;
  const int64_t span = args.scales != nullptr ? args.span : args.columns;
  const int64_t stride = args.stride;
  const uint8_t* weights = args.weights;
  const auto* x = static_cast<const float*>(args.x);
  for (int64_t first = 0, s = 0; first < args.columns; first += span, ++s) {
    __m512 sum[W][2];
    start<W>(args, sum);
    const int64_t count = args.columns - first < span ? args.columns - first : span;
    for (int64_t i = 0; i < count; i += 4, weights += 2 * kPairBytes, x += 4 * W) {
      prefetch_ahead<2 * kPairBytes>(weights);
      prefetch_ahead<2 * kPairBytes>(weights + stride);
#pragma GCC unroll 2
      for (int pair = 0; pair < 2; ++pair) {
        __m512 weight[2][2];
#pragma GCC unroll 2
        for (int p = 0; p < 2; ++p) {
          const uint8_t* at = weights + (p == 0 ? 0 : stride) + pair * kPairBytes;
          code == WideCode::e4m3 ? columns_of_e4m3(at, weight[p]) : columns_of_bf16(at, weight[p]);
        }
#pragma GCC unroll 2
        for (int c = 0; c < 2; ++c) {
#pragma GCC unroll 12
          for (int m = 0; m < W; ++m) {
            const __m512 value = _mm512_set1_ps(x[(2 * pair + c) * W + m]);
            sum[m][0] = _mm512_fmadd_ps(weight[0][c], value, sum[m][0]);
            sum[m][1] = _mm512_fmadd_ps(weight[1][c], value, sum[m][1]);
          }
        }
      }
    }
    finish<W>(args, s, sum);
  }
}

template <WideCode code>
void multiply_avx512(const WideArgs& args) {
  with_rows<kRows512>(args.w, [&]<int W>() { multiply_512<W, code>(args); });
}

// As an instruction: compilers copy the tied accumulator of the intrinsic around.
GEARSHIFT_BF16 inline __attribute__((always_inline)) void dot2(__m512& sum, __m512i weights, __m512i x) {
  asm("vdpbf16ps %2,%1,%0" : "+v"(sum) : "v"(weights), "v"(x));
}

template <int W>
GEARSHIFT_BF16 void multiply_pairs(const WideArgs& args) {
  const int64_t span = args.scales != nullptr ? args.span : args.columns;
  const uint8_t* weights = args.weights;
  const auto* x = static_cast<const int32_t*>(args.x);
  const int64_t stride = args.stride;
  for (int64_t first = 0, s = 0; first < args.columns; first += span, ++s) {
    __m512 sum[W][2];
    start<W>(args, sum);
    const int64_t count = args.columns - first < span ? args.columns - first : span;
    for (int64_t i = 0; i < count; i += 4, weights += 128, x += 2 * W) {
      prefetch_ahead<128>(weights);
      prefetch_ahead<128>(weights + stride);
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        const __m512i one = _mm512_loadu_si512(weights + 64 * j);
        const __m512i two = _mm512_loadu_si512(weights + stride + 64 * j);
#pragma GCC unroll 14
        for (int m = 0; m < W; ++m) {
          const __m512i pair = _mm512_set1_epi32(x[j * W + m]);
          dot2(sum[m][0], one, pair);
          dot2(sum[m][1], two, pair);
        }
      }
    }
    finish<W>(args, s, sum);
  }
}

void multiply_dot(const WideArgs& args) {
  with_rows<kRowsDot>(args.w, [&]<int W>() { multiply_pairs<W>(args); });
}

// The lower halves of fp32 numbers that bf16 holds are zero: two columns of a row fit one dword.
GEARSHIFT_AVX512 void decode_pairs(const uint8_t* codes, int64_t columns, uint8_t* pairs) {
  for (int64_t column = 0; column < columns; column += 4, codes += 64, pairs += 128) {
    prefetch_ahead<64>(codes);
#pragma GCC unroll 2
    for (int two = 0; two < 2; ++two) {
      __m512 rows[2];
      columns_of_e4m3(codes + 32 * two, rows);
      const __m512i low = _mm512_srli_epi32(_mm512_castps_si512(rows[0]), 16);
      _mm512_storeu_si512(pairs + 64 * two, _mm512_or_si512(low, _mm512_castps_si512(rows[1])));
    }
  }
}

WidePieces wide_floats(int64_t panels, int64_t tile_rows, WideX x, double unit, void (*multiply)(const WideArgs&)) {
  WidePieces pieces;
  pieces.panels = panels;
  pieces.tile_rows = tile_rows;
  pieces.x = x;
  pieces.unit = unit;
  pieces.multiply = multiply;
  return pieces;
}

}  // namespace

WidePieces wide_bf16_avx2() { return wide_floats(1, kRows256, WideX::floats, 1, multiply_avx2<WideCode::bf16>); }
WidePieces wide_e4m3_avx2() {
  return wide_floats(1, kRows256, WideX::floats, kE4m3Unit, multiply_avx2<WideCode::e4m3>);
}
WidePieces wide_bf16_avx512() { return wide_floats(2, kRows512, WideX::floats, 1, multiply_avx512<WideCode::bf16>); }
WidePieces wide_e4m3_avx512() {
  return wide_floats(2, kRows512, WideX::floats, kE4m3Unit, multiply_avx512<WideCode::e4m3>);
}
WidePieces wide_bf16_dot() { return wide_floats(2, kRowsDot, WideX::bf16_twos, 1, multiply_dot); }
WidePieces wide_e4m3_dot() {
  WidePieces pieces = wide_floats(2, kRowsDot, WideX::bf16_twos, kE4m3Unit, multiply_dot);
  pieces.decode = decode_pairs;
  return pieces;
}

}  // namespace gearshift

#endif
