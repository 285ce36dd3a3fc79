#include "kernel/cpu/nvfp4_dot.h"

#include <cstring>

#include "format/e2m1.h"
#include "format/e4m3.h"
#include "format/nvfp4.h"
#include "kernel/layout/nvfp4_rows16_dot4.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC's own AVX-512 header leaves registers undefined on purpose and warns about it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

namespace gearshift {

namespace {

constexpr int64_t kGroups = kDot4Columns / kDot4Group;
constexpr float kScaleFactor = 64;
// A weight scale's seven low bits moved under an fp16 exponent: the value times 2^-8.
constexpr float kScaleShift = 0x1p-8f;

// ---- portable -------------------------------------------------------------------------------------------------------

void quantize_portable(const float* x, float global, DotGroup* group) {
  uint8_t codes[kDot4Group];
  const uint8_t scale = format::nvfp4_encode(x, kDot4Group, global, codes);
  int8_t doubled[kDot4Group];
  int32_t sum = 0;
  for (int64_t i = 0; i < kDot4Group; ++i) {
    doubled[i] = static_cast<int8_t>(2 * format::e2m1_table[codes[i]]);
    sum += doubled[i];
  }
  std::memcpy(group->codes, doubled, sizeof doubled);
  group->scale = format::decode_e4m3(scale) * kScaleFactor;
  group->correction = -12 * sum;
}

void panel_portable(const uint8_t* panel, int64_t blocks, const DotGroup* const* x, int64_t rows, float (*out)[16]) {
  for (int64_t m = 0; m < rows; ++m) {
    float sum[kDot4Rows] = {};
    for (int64_t g = 0; g < blocks * kGroups; ++g) {
      const uint8_t* block = panel + g / kGroups * kDot4BlockBytes;
      const uint8_t* bytes = block + g % kGroups * kDot4GroupBytes;
      const uint8_t* scales = block + kDot4ScaleOffset + g % kGroups * kDot4Rows;
      int8_t activations[kDot4Group];
      std::memcpy(activations, x[m][g].codes, sizeof activations);
      for (int64_t r = 0; r < kDot4Rows; ++r) {
        int32_t dot = 0;
        for (int64_t i = 0; i < kDot4Group; ++i) {
          const uint8_t byte = bytes[i / 8 * 64 + 4 * r + i % 4];
          const float weight = format::e2m1_table[i % 8 < 4 ? byte & 15 : byte >> 4];
          dot += static_cast<int32_t>(2 * weight) * activations[i];
        }
        sum[r] += static_cast<float>(dot) * (format::e4m3_table[scales[r]] * kScaleShift * x[m][g].scale);
      }
    }
    std::memcpy(out[m], sum, sizeof sum);
  }
}

#if defined(__x86_64__)

// The bytes 2 * e2m1 + 12 of the sixteen codes.
alignas(16) constexpr uint8_t kUnsignedCodes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

// How far ahead of its use a panel is fetched: the hardware alone follows this access pattern too late.
constexpr int64_t kPrefetchBytes = 7 * kDot4BlockBytes;

inline void prefetch_block(const uint8_t* block) {
#pragma GCC unroll 9
  for (int64_t line = 0; line < kDot4BlockBytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(block + kPrefetchBytes + line), _MM_HINT_T0);
  }
}

// ---- AVX2 -----------------------------------------------------------------------------------------------------------

// 2 * e2m1(y) of eight values: how many of the rounding thresholds |y| has passed, each weighted by its step. The
// unordered comparisons send NaN past all of them, as the encoder does, and its sign test is false.
__attribute__((target("avx2,fma,f16c"))) inline __m256i doubled_e2m1(__m256 y) {
  const __m256 a = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), y);
  const auto past = [&](float threshold) __attribute__((target("avx2,fma,f16c"))) {
    return _mm256_castps_si256(_mm256_cmp_ps(a, _mm256_set1_ps(threshold), _CMP_NLE_UQ));
  };
  const auto reached = [&](float threshold) __attribute__((target("avx2,fma,f16c"))) {
    return _mm256_castps_si256(_mm256_cmp_ps(a, _mm256_set1_ps(threshold), _CMP_NLT_UQ));
  };
  const __m256i ones =
      _mm256_add_epi32(_mm256_add_epi32(past(0.25f), reached(0.75f)), _mm256_add_epi32(past(1.25f), reached(1.75f)));
  const __m256i twos = _mm256_add_epi32(past(2.5f), reached(3.5f));
  const __m256i fours = past(5.0f);
  const __m256i minus =
      _mm256_add_epi32(_mm256_add_epi32(ones, _mm256_slli_epi32(twos, 1)), _mm256_slli_epi32(fours, 2));
  const __m256i positive = _mm256_castps_si256(_mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_NLT_UQ));
  return _mm256_sub_epi32(_mm256_xor_si256(minus, positive), positive);
}

__attribute__((target("avx2,fma,f16c"))) void quantize_avx2(const float* x, float global, DotGroup* group) {
  const __m256 x0 = _mm256_loadu_ps(x);
  const __m256 x1 = _mm256_loadu_ps(x + 8);
  const __m256 sign = _mm256_set1_ps(-0.0f);
  // max(value, so far) keeps what it has when the value is NaN.
  const __m256 so_far = _mm256_max_ps(_mm256_andnot_ps(sign, x0), _mm256_setzero_ps());
  const __m256 eight = _mm256_max_ps(_mm256_andnot_ps(sign, x1), so_far);
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  const float amax = _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));

  const uint8_t scale = format::nvfp4_scale(amax, global);
  const float factor = format::nvfp4_factor(scale, global);
  if (factor == 0) {
    *group = {{0, 0, 0, 0}, 0, 0};
    return;
  }
  const __m256i q0 = doubled_e2m1(_mm256_mul_ps(x0, _mm256_set1_ps(factor)));
  const __m256i q1 = doubled_e2m1(_mm256_mul_ps(x1, _mm256_set1_ps(factor)));
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(q0, q1), 0xd8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(group->codes), bytes);
  const __m256i pairs = _mm256_add_epi32(q0, q1);
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 1));
  group->scale = format::e4m3_table[scale] * kScaleFactor;
  group->correction = -12 * _mm_cvtsi128_si32(sum);
}

// maddubs adds two products of u8 (<= 24) and s8 (<= 12 in magnitude) in int16; four of those stay below 2304, so
// nothing saturates before madd widens to int32.
template <int M>
__attribute__((target("avx2,fma,f16c"))) void rows_avx2(const uint8_t* block, int64_t blocks, const DotGroup* const* x,
                                                        float (*out)[16]) {
  const __m256i table = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(kUnsignedCodes)));
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i one = _mm256_set1_epi16(1);
  const __m128i scale_bits = _mm_set1_epi16(static_cast<int16_t>(0xbf80));
  __m256 sum[M][2];
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m) sum[m][0] = sum[m][1] = _mm256_setzero_ps();
  for (int64_t b = 0; b < blocks; ++b, block += kDot4BlockBytes) {
    prefetch_block(block);
    for (int64_t g = 0; g < kGroups; ++g) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const uint8_t* at = block + g * kDot4GroupBytes + half * 32;
        const __m256i v0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
        const __m256i v1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 64));
        const __m256i w0 = _mm256_shuffle_epi8(table, _mm256_and_si256(v0, nibble));
        const __m256i w1 = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(v0, 4), nibble));
        const __m256i w2 = _mm256_shuffle_epi8(table, _mm256_and_si256(v1, nibble));
        const __m256i w3 = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(v1, 4), nibble));
        const __m128i codes = _mm_cvtepi8_epi16(
            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block + kDot4ScaleOffset + g * kDot4Rows + half * 8)));
        const __m256 scale = _mm256_cvtph_ps(_mm_and_si128(_mm_slli_epi16(codes, 7), scale_bits));
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) {
          const DotGroup& group = x[m][b * kGroups + g];
          const __m256i low = _mm256_add_epi16(_mm256_maddubs_epi16(w0, _mm256_set1_epi32(group.codes[0])),
                                               _mm256_maddubs_epi16(w1, _mm256_set1_epi32(group.codes[1])));
          const __m256i high = _mm256_add_epi16(_mm256_maddubs_epi16(w2, _mm256_set1_epi32(group.codes[2])),
                                                _mm256_maddubs_epi16(w3, _mm256_set1_epi32(group.codes[3])));
          const __m256i dot = _mm256_add_epi32(_mm256_madd_epi16(_mm256_add_epi16(low, high), one),
                                               _mm256_set1_epi32(group.correction));
          sum[m][half] =
              _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_mul_ps(scale, _mm256_set1_ps(group.scale)), sum[m][half]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m) {
    _mm256_storeu_ps(out[m], sum[m][0]);
    _mm256_storeu_ps(out[m] + 8, sum[m][1]);
  }
}

void panel_avx2(const uint8_t* panel, int64_t blocks, const DotGroup* const* x, int64_t rows, float (*out)[16]) {
  if (rows == 4) return rows_avx2<4>(panel, blocks, x, out);
  if (rows >= 2) rows_avx2<2>(panel, blocks, x, out);
  if (rows != 2) rows_avx2<1>(panel, blocks, x + rows - 1, out + rows - 1);
}

// ---- AVX-512 with VNNI ----------------------------------------------------------------------------------------------

#define GEARSHIFT_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

// As an instruction: compilers copy the tied accumulator of the intrinsic around.
GEARSHIFT_VNNI inline void dot4(__m512i& sum, __m512i weights, __m512i x) {
  asm("vpdpbusd %2,%1,%0" : "+v"(sum) : "v"(weights), "v"(x));
}

template <int M>
GEARSHIFT_VNNI void rows_vnni(const uint8_t* block, int64_t blocks, const DotGroup* const* x, float (*out)[16]) {
  const __m512i table = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(kUnsignedCodes)));
  const __m512i nibble = _mm512_set1_epi8(15);
  const __m256i scale_bits = _mm256_set1_epi16(static_cast<int16_t>(0xbf80));
  __m512 sum[M];
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m) sum[m] = _mm512_setzero_ps();
  for (int64_t b = 0; b < blocks; ++b, block += kDot4BlockBytes) {
    prefetch_block(block);
    for (int64_t g = 0; g < kGroups; ++g) {
      const __m512i v0 = _mm512_loadu_si512(block + g * kDot4GroupBytes);
      const __m512i v1 = _mm512_loadu_si512(block + g * kDot4GroupBytes + 64);
      const __m512i w0 = _mm512_shuffle_epi8(table, _mm512_and_si512(v0, nibble));
      const __m512i w1 = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(v0, 4), nibble));
      const __m512i w2 = _mm512_shuffle_epi8(table, _mm512_and_si512(v1, nibble));
      const __m512i w3 = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(v1, 4), nibble));
      const __m256i codes = _mm256_cvtepi8_epi16(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + kDot4ScaleOffset + g * kDot4Rows)));
      const __m512 scale = _mm512_cvtph_ps(_mm256_and_si256(_mm256_slli_epi16(codes, 7), scale_bits));
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) {
        const DotGroup& group = x[m][b * kGroups + g];
        __m512i dot = _mm512_set1_epi32(group.correction);
        dot4(dot, w0, _mm512_set1_epi32(group.codes[0]));
        dot4(dot, w1, _mm512_set1_epi32(group.codes[1]));
        dot4(dot, w2, _mm512_set1_epi32(group.codes[2]));
        dot4(dot, w3, _mm512_set1_epi32(group.codes[3]));
        sum[m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_mul_ps(scale, _mm512_set1_ps(group.scale)), sum[m]);
      }
    }
  }
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m) _mm512_storeu_ps(out[m], sum[m]);
}

void panel_vnni(const uint8_t* panel, int64_t blocks, const DotGroup* const* x, int64_t rows, float (*out)[16]) {
  if (rows == 4) return rows_vnni<4>(panel, blocks, x, out);
  if (rows >= 2) rows_vnni<2>(panel, blocks, x, out);
  if (rows != 2) rows_vnni<1>(panel, blocks, x + rows - 1, out + rows - 1);
}

#endif

}  // namespace

DotPieces dot_pieces_for(Isa isa) {
#if defined(__x86_64__)
  if (isa_covers(isa, Isa::avx512_vnni)) return {quantize_avx2, panel_vnni};
  if (isa_covers(isa, Isa::avx2)) return {quantize_avx2, panel_avx2};
#endif
  static_cast<void>(isa);
  return {quantize_portable, panel_portable};
}

}  // namespace gearshift
