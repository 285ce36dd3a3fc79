#include "kernel/cpu/stage/quantize.h"

#include <cstring>

#include "format/bf16.h"
#include "format/e2m1.h"
#include "format/e4m3.h"
#include "format/fp16.h"
#include "format/int8.h"
#include "format/nvfp4.h"
#include "kernel/cpu/stage/x86.h"

namespace gearshift {

namespace {

struct GroupScale {
  float scale;   // what codes stand for
  float factor;  // what x is multiplied by before coding; 0: all codes are 0
};

// Inlined, because code without AVX between instructions with it makes both wait.
inline __attribute__((always_inline)) GroupScale scale_of(const E2m1Recipe& recipe, float amax) {
  if (recipe.group == format::nvfp4_block) {
    const uint8_t scale = format::nvfp4_scale(amax, recipe.global);
    return {format::e4m3_table[scale], format::nvfp4_factor(scale, recipe.global)};
  }
  const uint8_t scale = format::mx_scale(amax, recipe.rule, format::mx_e2m1);
  return {format::decode_e8m0(scale), format::mx_factor(scale)};
}

void quantize_portable(const E2m1Recipe& recipe, const float* x, int64_t groups, int8_t* codes, float* scales) {
  for (int64_t g = 0; g < groups; ++g, x += recipe.group, codes += recipe.group) {
    const GroupScale scale = scale_of(recipe, format::abs_max(x, recipe.group));
    scales[g] = scale.scale;
    for (int64_t i = 0; i < recipe.group; ++i) {
      const float value = scale.factor == 0 ? 0 : format::e2m1_table[format::encode_e2m1(x[i] * scale.factor)];
      codes[i] = static_cast<int8_t>(2 * value);
    }
  }
}

#if defined(__x86_64__)

// All ones where |y| has passed a threshold, or reached it; NaN has passed all.
GEARSHIFT_AVX2 inline __attribute__((always_inline)) __m256i past(__m256 a, float threshold) {
  return _mm256_castps_si256(_mm256_cmp_ps(a, _mm256_set1_ps(threshold), _CMP_NLE_UQ));
}
GEARSHIFT_AVX2 inline __attribute__((always_inline)) __m256i reached(__m256 a, float threshold) {
  return _mm256_castps_si256(_mm256_cmp_ps(a, _mm256_set1_ps(threshold), _CMP_NLT_UQ));
}

// 2 * e2m1(y) of eight values: how many of the rounding thresholds |y| has passed, each weighted by its step. NaN gets
// the largest code, as from the encoder, and its sign test is false.
GEARSHIFT_AVX2 inline __attribute__((always_inline)) __m256i doubled_e2m1(__m256 y) {
  const __m256 a = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), y);
  const __m256i ones = _mm256_add_epi32(_mm256_add_epi32(past(a, 0.25f), reached(a, 0.75f)),
                                        _mm256_add_epi32(past(a, 1.25f), reached(a, 1.75f)));
  const __m256i twos = _mm256_add_epi32(past(a, 2.5f), reached(a, 3.5f));
  const __m256i fours = past(a, 5.0f);
  const __m256i minus =
      _mm256_add_epi32(_mm256_add_epi32(ones, _mm256_slli_epi32(twos, 1)), _mm256_slli_epi32(fours, 2));
  const __m256i positive = _mm256_castps_si256(_mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_NLT_UQ));
  return _mm256_sub_epi32(_mm256_xor_si256(minus, positive), positive);
}

GEARSHIFT_AVX2 inline float largest_lane(__m256 v) {
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
}

GEARSHIFT_AVX2 void quantize_avx2(const E2m1Recipe& recipe, const float* x, int64_t groups, int8_t* codes,
                                  float* scales) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  for (int64_t g = 0; g < groups; ++g) {
    const float* end = x + recipe.group;
    __m256 largest = _mm256_setzero_ps();
    // max(value, so far) keeps what it has when the value is NaN.
    for (const float* at = x; at != end; at += 8)
      largest = _mm256_max_ps(_mm256_andnot_ps(sign, _mm256_loadu_ps(at)), largest);
    const GroupScale scale = scale_of(recipe, largest_lane(largest));
    scales[g] = scale.scale;
    const __m256 factor = _mm256_set1_ps(scale.factor);
    for (; x != end; x += 16, codes += 16) {
      __m128i bytes = _mm_setzero_si128();
      if (scale.factor != 0) {
        const __m256i first = doubled_e2m1(_mm256_mul_ps(_mm256_loadu_ps(x), factor));
        const __m256i second = doubled_e2m1(_mm256_mul_ps(_mm256_loadu_ps(x + 8), factor));
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
        bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), bytes);
    }
  }
}

GEARSHIFT_AVX2 inline __attribute__((always_inline)) __m256i eight_codes(const float* x, __m256 inverse) {
  const __m256 y = _mm256_mul_ps(_mm256_loadu_ps(x), inverse);
  // NaN becomes 0. An infinite `inverse` (a denormal row) leaves the range; rounding a bound is the bound.
  const __m256 number = _mm256_and_ps(y, _mm256_cmp_ps(y, y, _CMP_ORD_Q));
  return _mm256_cvtps_epi32(_mm256_max_ps(_mm256_min_ps(number, _mm256_set1_ps(127)), _mm256_set1_ps(-128)));
}

// Sixteen codes as int16, in order.
GEARSHIFT_AVX2 inline __attribute__((always_inline)) __m256i sixteen_codes(const float* x, __m256 inverse) {
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(eight_codes(x, inverse), eight_codes(x + 8, inverse)), 0xd8);
}

GEARSHIFT_AVX2 float quantize_int8_avx2(const float* x, int64_t count, int8_t* codes) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 largest = _mm256_setzero_ps();
  for (int64_t i = 0; i < count; i += 8) {
    largest = _mm256_max_ps(_mm256_andnot_ps(sign, _mm256_loadu_ps(x + i)), largest);
  }
  const float amax = largest_lane(largest);
  const __m256 inverse = _mm256_set1_ps(amax == 0 ? 0 : 127.0f / amax);
  for (int64_t i = 0; i < count; i += 32) {
    const __m256i bytes = _mm256_packs_epi16(sixteen_codes(x + i, inverse), sixteen_codes(x + i + 16, inverse));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + i), _mm256_permute4x64_epi64(bytes, 0xd8));
  }
  return amax / 127.0f;
}

// Eights only; returns how many elements were read.
GEARSHIFT_AVX2 int64_t load_eights(DType dtype, const uint8_t* at, int64_t count, float* out) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 2 * i));
    _mm256_storeu_ps(out + i, dtype == DType::f16
                                  ? _mm256_cvtph_ps(words)
                                  : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16)));
  }
  return i;
}

GEARSHIFT_AVX2 void sum_halfwords_avx2(const int8_t* codes, int64_t unit, int64_t units, uint32_t* out) {
  const __m128i ones = _mm_set1_epi8(1);
  for (int64_t u = 0; u < units; ++u) {
    __m128i sum = _mm_setzero_si128();
    for (const int8_t* end = codes + unit; codes != end; codes += 16) {
      sum = _mm_add_epi16(sum, _mm_maddubs_epi16(ones, _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes))));
    }
    sum = _mm_add_epi16(sum, _mm_unpackhi_epi64(sum, sum));
    sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 1));
    out[u] = static_cast<uint32_t>(_mm_cvtsi128_si32(sum));
  }
}

#endif

}  // namespace

void load_floats(Isa isa, const ConstMatrix& x, int64_t row, int64_t first, int64_t count, float* out) {
  const int64_t from = row * x.stride + first;
  const auto* base = static_cast<const uint8_t*>(x.data);
  if (x.dtype == DType::f32) {
    std::memcpy(out, base + from * 4, static_cast<size_t>(count) * 4);
    return;
  }
  int64_t i = 0;
#if defined(__x86_64__)
  if (isa_covers(isa, Isa::avx2)) i = load_eights(x.dtype, base + from * 2, count, out);
#endif
  static_cast<void>(isa);
  for (; i < count; ++i) {
    uint16_t code;
    std::memcpy(&code, base + (from + i) * 2, 2);
    out[i] = x.dtype == DType::f16 ? format::decode_fp16(code) : format::decode_bf16(code);
  }
}

void sum_halfwords(Isa isa, const int8_t* codes, int64_t unit, int64_t units, uint32_t* out) {
#if defined(__x86_64__)
  if (isa_covers(isa, Isa::avx2)) return sum_halfwords_avx2(codes, unit, units, out);
#endif
  static_cast<void>(isa);
  for (int64_t u = 0; u < units; ++u) {
    int32_t low = 0, high = 0;
    for (const int8_t* end = codes + unit; codes != end; codes += 4) {
      low += codes[0] + codes[1];
      high += codes[2] + codes[3];
    }
    out[u] = (static_cast<uint32_t>(low) & 0xffffu) | static_cast<uint32_t>(high) << 16;
  }
}

QuantizeInt8 quantize_int8_for(Isa isa) {
#if defined(__x86_64__)
  if (isa_covers(isa, Isa::avx2)) return quantize_int8_avx2;
#endif
  static_cast<void>(isa);
  return format::int8_encode_dynamic;
}

QuantizeE2m1 quantize_e2m1_for(Isa isa) {
#if defined(__x86_64__)
  if (isa_covers(isa, Isa::avx2)) return quantize_avx2;
#endif
  static_cast<void>(isa);
  return quantize_portable;
}

}  // namespace gearshift
