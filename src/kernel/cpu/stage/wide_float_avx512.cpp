// Weights of any wide code against fp32 x in 512 bits, with fused multiply-add, and dots of bf16 pairs. See
// wide_float_avx2.cpp for e4m3.
#include "kernel/cpu/stage/wide.h"
#include "kernel/cpu/stage/with_rows.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

namespace {

constexpr double kE4m3Unit = 256;
// 12 x 2 sums, four vectors of weights, one of x: 29 of 32 registers.
constexpr int kRows512 = 12;
// 14 x 2 sums, two vectors of weights, one of x: 31 of 32.
constexpr int kRowsDot = kPairDotRows;
// 128 columns of two panels in fp32 are 16 KiB, 256 of bf16 pairs too.
constexpr int64_t kBlockFloats = 128;
constexpr int64_t kBlockPairs = 256;

// Bytes of two columns of a panel; four columns of int8 lie together.
constexpr int two_columns(WideCode code) {
  return code == WideCode::f32 ? 128 : code == WideCode::bf16 || code == WideCode::f16 ? 64 : 32;
}

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

// Columns 2 Pair and 2 Pair + 1 of the four at `at`, 16 rows each.
template <WideCode code, int Pair>
GEARSHIFT_AVX512 inline __attribute__((always_inline)) void columns_512(const uint8_t* at, __m512 out[2]) {
  if constexpr (code == WideCode::e4m3) {
    const __m512i words = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32 * Pair)));
    const __m512i halves =
        _mm512_and_si512(_mm512_slli_epi16(words, 7), _mm512_set1_epi16(static_cast<int16_t>(0xbf80)));
    out[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
    out[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
  } else if constexpr (code == WideCode::bf16) {
    const __m512i pairs = _mm512_loadu_si512(at + 64 * Pair);
    out[0] = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
    out[1] = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int32_t>(0xffff0000))));
  } else {
#pragma GCC unroll 2
    for (int c = 0; c < 2; ++c) {
      if constexpr (code == WideCode::f16) {
        out[c] = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32 * (2 * Pair + c))));
      } else if constexpr (code == WideCode::f32) {
        out[c] = _mm512_loadu_ps(at + 64 * (2 * Pair + c));
      } else {  // four columns of a row in a dword, offset by 128
        const __m512i fours = _mm512_srli_epi32(_mm512_loadu_si512(at), static_cast<unsigned>(8 * (2 * Pair + c)));
        const __m512i codes = _mm512_and_si512(fours, _mm512_set1_epi32(255));
        out[c] = _mm512_cvtepi32_ps(_mm512_sub_epi32(codes, _mm512_set1_epi32(128)));
      }
    }
  }
}

// As an instruction: compilers spill sums to the stack and fetch them back.
GEARSHIFT_AVX512 inline __attribute__((always_inline)) void add_product(__m512& sum, __m512 weights, __m512 x) {
  asm("vfmadd231ps %2,%1,%0" : "+v"(sum) : "v"(weights), "v"(x));
}

template <int W, WideCode code, int Pair>
GEARSHIFT_AVX512 inline __attribute__((always_inline)) void add_pair(const uint8_t* weights, int64_t stride,
                                                                     const float* x, __m512 sum[W][2]) {
  __m512 weight[2][2];
  columns_512<code, Pair>(weights, weight[0]);
  columns_512<code, Pair>(weights + stride, weight[1]);
#pragma GCC unroll 2
  for (int c = 0; c < 2; ++c) {
#pragma GCC unroll 12
    for (int m = 0; m < W; ++m) {
      const __m512 value = _mm512_set1_ps(x[(2 * Pair + c) * W + m]);
      add_product(sum[m][0], weight[0][c], value);
      add_product(sum[m][1], weight[1][c], value);
    }
  }
}

template <int W, WideCode code, bool Prefetch>
GEARSHIFT_AVX512 void multiply_512(const WideArgs& args) {
  constexpr int kStep = 2 * two_columns(code);
  const int64_t span = args.scales != nullptr ? args.span : args.columns;
  const int64_t stride = args.stride;
  const uint8_t* weights = args.weights;
  const auto* x = static_cast<const float*>(args.x);
  for (int64_t first = 0, s = 0; first < args.columns; first += span, ++s) {
    __m512 sum[W][2];
    start<W>(args, sum);
    const int64_t count = args.columns - first < span ? args.columns - first : span;
    for (int64_t i = 0; i < count; i += 4, weights += kStep, x += 4 * W) {
      if constexpr (Prefetch) {
        prefetch_ahead<kStep>(weights);
        prefetch_ahead<kStep>(weights + stride);
      }
      add_pair<W, code, 0>(weights, stride, x, sum);
      add_pair<W, code, 1>(weights, stride, x, sum);
    }
    finish<W>(args, s, sum);
  }
}

template <WideCode code>
void multiply_codes(const WideArgs& args) {
  with_rows<kRows512>(args.w, [&]<int W>() { multiply_512<W, code, true>(args); });
}
void multiply_floats(const WideArgs& args) {
  with_rows<kRows512>(args.w, [&]<int W>() { multiply_512<W, WideCode::f32, false>(args); });
}

// ---- one row of x: four panels side by side

constexpr int kOnePanels = 4;

template <WideCode code>
GEARSHIFT_AVX512 void multiply_one(const WideArgs& args) {
  constexpr int kStep = 2 * two_columns(code);
  const bool scaled = args.scales != nullptr;
  const int64_t span = scaled ? args.span : args.columns;
  auto* sums = static_cast<float*>(args.sums);
  const uint8_t* weights[kOnePanels];
  for (int p = 0; p < kOnePanels; ++p) weights[p] = args.weights + (p < args.panels ? p * args.stride : 0);
  const auto* x = static_cast<const float*>(args.x);
  for (int64_t first = 0, s = 0; first < args.columns; first += span, ++s) {
    __m512 sum[kOnePanels];
#pragma GCC unroll 4
    for (int p = 0; p < kOnePanels; ++p) sum[p] = scaled ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + 16 * p);
    const int64_t count = args.columns - first < span ? args.columns - first : span;
    for (int64_t i = 0; i < count; i += 4, x += 4) {
      const __m512 value[4] = {_mm512_set1_ps(x[0]), _mm512_set1_ps(x[1]), _mm512_set1_ps(x[2]), _mm512_set1_ps(x[3])};
#pragma GCC unroll 4
      for (int p = 0; p < kOnePanels; ++p) {
        prefetch_ahead<kStep, kNearBytes>(weights[p]);
        __m512 weight[4];
        columns_512<code, 0>(weights[p], weight);
        columns_512<code, 1>(weights[p], weight + 2);
#pragma GCC unroll 4
        for (int c = 0; c < 4; ++c) add_product(sum[p], weight[c], value[c]);
        weights[p] += kStep;
      }
    }
    const __m512 x_scale = _mm512_set1_ps(args.x_scales == nullptr ? 1 : args.x_scales[s]);
#pragma GCC unroll 4
    for (int p = 0; p < kOnePanels; ++p) {
      float* to = sums + 16 * p;
      __m512 total = sum[p];
      if (scaled) {
        const __m512 scale = _mm512_loadu_ps(args.scales + 16 * kOnePanels * s + 16 * p);
        total = _mm512_fmadd_ps(_mm512_mul_ps(total, x_scale), scale, _mm512_loadu_ps(to));
      }
      _mm512_storeu_ps(to, total);
    }
  }
}

// fp32 [column][16 rows], as f32 codes lie.
template <WideCode code>
GEARSHIFT_AVX512 void decode_512(const uint8_t* codes, int64_t columns, uint8_t* out) {
  constexpr int kStep = 2 * two_columns(code);
  for (int64_t column = 0; column < columns; column += 4, codes += kStep, out += 256) {
    prefetch_ahead<kStep>(codes);
    __m512 values[4];
    columns_512<code, 0>(codes, values);
    columns_512<code, 1>(codes, values + 2);
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) _mm512_storeu_ps(out + 64 * c, values[c]);
  }
}

template <WideCode code>
WidePieces pieces_512() {
  WidePieces pieces;
  pieces.panels = 2;
  pieces.tile_rows = kRows512;
  pieces.x = WideX::floats;
  pieces.unit = code == WideCode::e4m3 ? kE4m3Unit : 1;
  pieces.multiply = multiply_codes<code>;
  pieces.multiply_one = multiply_one<code>;
  pieces.one_panels = kOnePanels;
  pieces.block = kBlockFloats;
  if constexpr (code != WideCode::f32 && code != WideCode::bf16) {
    pieces.decode = decode_512<code>;
    pieces.multiply_decoded = multiply_floats;
    pieces.decoded_bytes = 4;
  }
  return pieces;
}

// ---- dots of bf16 pairs ---------------------------------------------------------------------------------------------

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

WidePieces pieces_dot() {
  WidePieces pieces;
  pieces.panels = 2;
  pieces.tile_rows = kRowsDot;
  pieces.x = WideX::bf16_twos;
  pieces.block = kBlockPairs;
  return pieces;
}

}  // namespace

void multiply_pairs_dot(const WideArgs& args) {
  with_rows<kRowsDot>(args.w, [&]<int W>() { multiply_pairs<W>(args); });
}

// The lower halves of fp32 numbers that bf16 holds are zero: two columns of a row fit one dword.
GEARSHIFT_AVX512 void decode_e4m3_pairs(const uint8_t* codes, int64_t columns, uint8_t* pairs) {
  for (int64_t column = 0; column < columns; column += 4, codes += 64, pairs += 128) {
    prefetch_ahead<64>(codes);
    __m512 values[4];
    columns_512<WideCode::e4m3, 0>(codes, values);
    columns_512<WideCode::e4m3, 1>(codes, values + 2);
#pragma GCC unroll 2
    for (int two = 0; two < 2; ++two) {
      const __m512i low = _mm512_srli_epi32(_mm512_castps_si512(values[2 * two]), 16);
      _mm512_storeu_si512(pairs + 64 * two, _mm512_or_si512(low, _mm512_castps_si512(values[2 * two + 1])));
    }
  }
}

WidePieces wide_float_avx512(WideCode code) {
  switch (code) {
    case WideCode::int8:
      return pieces_512<WideCode::int8>();
    case WideCode::e4m3:
      return pieces_512<WideCode::e4m3>();
    case WideCode::bf16:
      return pieces_512<WideCode::bf16>();
    case WideCode::f16:
      return pieces_512<WideCode::f16>();
    case WideCode::f32:
      break;
  }
  return pieces_512<WideCode::f32>();
}

WidePieces wide_bf16_dot() {
  WidePieces pieces = pieces_dot();
  pieces.multiply = multiply_pairs_dot;
  return pieces;
}
WidePieces wide_e4m3_dot() {
  WidePieces pieces = pieces_dot();
  pieces.unit = kE4m3Unit;
  pieces.decode = decode_e4m3_pairs;
  pieces.multiply_decoded = multiply_pairs_dot;
  pieces.decoded_bytes = 2;
  return pieces;
}

}  // namespace gearshift

#endif
