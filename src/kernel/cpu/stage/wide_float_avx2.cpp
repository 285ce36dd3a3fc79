// Weights of any wide code against fp32 x in 256 bits, with fused multiply-add.
//
// e4m3 is widened through fp16: sign and seven bits moved next to fp16's exponent are the value over 256, subnormals
// included, and the conversion instruction knows subnormals; `unit` makes up for the 256.
#include "kernel/cpu/stage/wide.h"
#include "kernel/cpu/stage/with_rows.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

namespace {

// 6 x 2 sums, two vectors of weights, one of x: 15 of 16 registers.
constexpr int kRows256 = 6;
// 256 columns of 16 rows in fp32 are 16 KiB.
constexpr int64_t kBlock256 = 256;

// Bytes of four columns of a panel.
constexpr int four_columns(WideCode code) {
  return code == WideCode::f32 ? 256 : code == WideCode::bf16 || code == WideCode::f16 ? 128 : 64;
}

GEARSHIFT_AVX2 inline __m256i load_256(const uint8_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

// Rows 0 to 7 and 8 to 15 of column C of the four at `at`.
template <WideCode code, int C>
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void column_256(const uint8_t* at, __m256 out[2]) {
  if constexpr (code == WideCode::e4m3) {
    const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * C)));
    const __m256i halves =
        _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(static_cast<int16_t>(0xbf80)));
    out[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
    out[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
    return;
  }
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    if constexpr (code == WideCode::bf16) {  // columns come in pairs
      const __m256i pairs = load_256(at + 64 * (C / 2) + 32 * half);
      out[half] =
          _mm256_castsi256_ps(C % 2 == 1 ? _mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int32_t>(0xffff0000)))
                                         : _mm256_slli_epi32(pairs, 16));
    } else if constexpr (code == WideCode::f16) {
      out[half] = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 32 * C + 16 * half)));
    } else if constexpr (code == WideCode::f32) {
      out[half] = _mm256_loadu_ps(reinterpret_cast<const float*>(at + 64 * C + 32 * half));
    } else {  // four columns of a row in a dword, offset by 128
      const __m256i fours = load_256(at + 32 * half);
      const __m256i codes = _mm256_and_si256(_mm256_srli_epi32(fours, 8 * C), _mm256_set1_epi32(255));
      out[half] = _mm256_cvtepi32_ps(_mm256_sub_epi32(codes, _mm256_set1_epi32(128)));
    }
  }
}

// As an instruction: compilers spill sums to the stack and fetch them back.
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void add_product(__m256& sum, __m256 weights, __m256 x) {
  asm("vfmadd231ps %2,%1,%0" : "+x"(sum) : "x"(weights), "x"(x));
}

template <int W, WideCode code, int C>
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void add_column(const uint8_t* at, const float* x,
                                                                     __m256 sum[W][2]) {
  __m256 weight[2];
  column_256<code, C>(at, weight);
#pragma GCC unroll 6
  for (int m = 0; m < W; ++m) {
    const __m256 value = _mm256_broadcast_ss(x + C * W + m);
    add_product(sum[m][0], weight[0], value);
    add_product(sum[m][1], weight[1], value);
  }
}

template <int W, WideCode code, bool Prefetch>
GEARSHIFT_AVX2 void multiply_256(const WideArgs& args) {
  constexpr int kStep = four_columns(code);
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
    for (int64_t i = 0; i < count; i += 4, weights += kStep, x += 4 * W) {
      if constexpr (Prefetch) prefetch_ahead<kStep>(weights);
      add_column<W, code, 0>(weights, x, sum);
      add_column<W, code, 1>(weights, x, sum);
      add_column<W, code, 2>(weights, x, sum);
      add_column<W, code, 3>(weights, x, sum);
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
void multiply_codes(const WideArgs& args) {
  with_rows<kRows256>(args.w, [&]<int W>() { multiply_256<W, code, true>(args); });
}
void multiply_floats(const WideArgs& args) {
  with_rows<kRows256>(args.w, [&]<int W>() { multiply_256<W, WideCode::f32, false>(args); });
}

template <WideCode code, int C>
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void put_column(const uint8_t* at, float* out) {
  __m256 values[2];
  column_256<code, C>(at, values);
  _mm256_storeu_ps(out + 16 * C, values[0]);
  _mm256_storeu_ps(out + 16 * C + 8, values[1]);
}

// ---- one row of x: four panels side by side

constexpr int kOnePanels = 4;

template <WideCode code, int C>
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void add_column_of_panels(const uint8_t* const weights[kOnePanels],
                                                                               const float* x,
                                                                               __m256 sum[kOnePanels][2]) {
  const __m256 value = _mm256_broadcast_ss(x + C);
#pragma GCC unroll 4
  for (int p = 0; p < kOnePanels; ++p) {
    __m256 weight[2];
    column_256<code, C>(weights[p], weight);
    add_product(sum[p][0], weight[0], value);
    add_product(sum[p][1], weight[1], value);
  }
}

template <WideCode code>
GEARSHIFT_AVX2 void multiply_one(const WideArgs& args) {
  constexpr int kStep = four_columns(code);
  const bool scaled = args.scales != nullptr;
  const int64_t span = scaled ? args.span : args.columns;
  auto* sums = static_cast<float*>(args.sums);
  const uint8_t* weights[kOnePanels];
  for (int p = 0; p < kOnePanels; ++p) weights[p] = args.weights + (p < args.panels ? p * args.stride : 0);
  const auto* x = static_cast<const float*>(args.x);
  for (int64_t first = 0, s = 0; first < args.columns; first += span, ++s) {
    __m256 sum[kOnePanels][2];
#pragma GCC unroll 4
    for (int p = 0; p < kOnePanels; ++p) {
      sum[p][0] = scaled ? _mm256_setzero_ps() : _mm256_loadu_ps(sums + 16 * p);
      sum[p][1] = scaled ? _mm256_setzero_ps() : _mm256_loadu_ps(sums + 16 * p + 8);
    }
    const int64_t count = args.columns - first < span ? args.columns - first : span;
    for (int64_t i = 0; i < count; i += 4, x += 4) {
#pragma GCC unroll 4
      for (const uint8_t* at : weights) prefetch_ahead<kStep, kNearBytes>(at);
      add_column_of_panels<code, 0>(weights, x, sum);
      add_column_of_panels<code, 1>(weights, x, sum);
      add_column_of_panels<code, 2>(weights, x, sum);
      add_column_of_panels<code, 3>(weights, x, sum);
#pragma GCC unroll 4
      for (const uint8_t*& at : weights) at += kStep;
    }
    const __m256 x_scale = _mm256_set1_ps(args.x_scales == nullptr ? 1 : args.x_scales[s]);
#pragma GCC unroll 4
    for (int p = 0; p < kOnePanels; ++p) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        float* to = sums + 16 * p + 8 * half;
        __m256 total = sum[p][half];
        if (scaled) {
          const __m256 scale = _mm256_loadu_ps(args.scales + 16 * kOnePanels * s + 16 * p + 8 * half);
          total = _mm256_fmadd_ps(_mm256_mul_ps(total, x_scale), scale, _mm256_loadu_ps(to));
        }
        _mm256_storeu_ps(to, total);
      }
    }
  }
}

// fp32 [column][16 rows], as f32 codes lie.
template <WideCode code>
GEARSHIFT_AVX2 void decode_256(const uint8_t* codes, int64_t columns, uint8_t* out) {
  constexpr int kStep = four_columns(code);
  auto* floats = reinterpret_cast<float*>(out);
  for (int64_t column = 0; column < columns; column += 4, codes += kStep, floats += 64) {
    prefetch_ahead<kStep>(codes);
    put_column<code, 0>(codes, floats);
    put_column<code, 1>(codes, floats);
    put_column<code, 2>(codes, floats);
    put_column<code, 3>(codes, floats);
  }
}

template <WideCode code>
WidePieces pieces_256() {
  WidePieces pieces;
  pieces.tile_rows = kRows256;
  pieces.x = WideX::floats;
  pieces.unit = code == WideCode::e4m3 ? 256 : 1;
  pieces.multiply = multiply_codes<code>;
  pieces.multiply_one = multiply_one<code>;
  pieces.one_panels = kOnePanels;
  pieces.block = kBlock256;
  // bf16 becomes fp32 by one instruction on an idle unit: decoded blocks gain nothing.
  if constexpr (code != WideCode::f32 && code != WideCode::bf16) {
    pieces.decode = decode_256<code>;
    pieces.multiply_decoded = multiply_floats;
    pieces.decoded_bytes = 4;
  }
  return pieces;
}

}  // namespace

WidePieces wide_float_avx2(WideCode code) {
  switch (code) {
    case WideCode::int8:
      return pieces_256<WideCode::int8>();
    case WideCode::e4m3:
      return pieces_256<WideCode::e4m3>();
    case WideCode::bf16:
      return pieces_256<WideCode::bf16>();
    case WideCode::f16:
      return pieces_256<WideCode::f16>();
    case WideCode::f32:
      break;
  }
  return pieces_256<WideCode::f32>();
}

}  // namespace gearshift

#endif
