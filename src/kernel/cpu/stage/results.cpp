#include "kernel/cpu/stage/results.h"

#include "kernel/cpu/stage/x86.h"
#include "kernel/output.h"

namespace gearshift {

#if defined(__x86_64__)

namespace {

// Four float64 to fp32, truncated, the last bit set when anything was lost: rounding to 16 bits afterwards is the only
// rounding.
GEARSHIFT_AVX2 inline __m128 rounded_to_odd(__m256d value) {
  const __m256i bits = _mm256_castpd_si256(value);
  const __m256i lost = _mm256_and_si256(bits, _mm256_set1_epi64x(0x1fffffff));
  const __m256i exact = _mm256_cmpeq_epi64(lost, _mm256_setzero_si256());
  const __m256i sticky = _mm256_andnot_si256(exact, _mm256_set1_epi64x(0x20000000));
  const __m256i kept = _mm256_xor_si256(bits, lost);
  return _mm256_cvtpd_ps(_mm256_castsi256_pd(_mm256_or_si256(kept, sticky)));
}

GEARSHIFT_AVX2 inline __m256d four_results(const float* sums, double factor, const double* bias) {
  const __m256d value = _mm256_mul_pd(_mm256_cvtps_pd(_mm_loadu_ps(sums)), _mm256_set1_pd(factor));
  return _mm256_add_pd(value, _mm256_loadu_pd(bias));
}

// Eight fp32 to bf16, to nearest even; NaN becomes the quiet NaN.
GEARSHIFT_AVX2 inline __m128i to_bf16(__m256 value) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(last, _mm256_set1_epi32(0x7fff))), 16);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  const __m256i words = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), nan);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0xd8);
  return _mm256_castsi256_si128(packed);
}

// Whole groups of eight; returns how many were written.
GEARSHIFT_AVX2 int64_t store_eights(const Matrix& y, int64_t row, int64_t column, const float* sums, int64_t n,
                                    double factor, const double* bias) {
  const int64_t size = y.dtype == DType::f32 ? 4 : 2;
  uint8_t* to = static_cast<uint8_t*>(y.data) + (row * y.stride + column) * size;
  int64_t r = 0;
  for (; r + 8 <= n; r += 8, to += 8 * size) {
    const __m256d low = four_results(sums + r, factor, bias + r);
    const __m256d high = four_results(sums + r + 4, factor, bias + r + 4);
    if (y.dtype == DType::f32) {
      _mm256_storeu_ps(reinterpret_cast<float*>(to), _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low)));
      continue;
    }
    const __m256 odd = _mm256_set_m128(rounded_to_odd(high), rounded_to_odd(low));
    const __m128i codes = y.dtype == DType::f16 ? _mm256_cvtps_ph(odd, _MM_FROUND_TO_NEAREST_INT) : to_bf16(odd);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), codes);
  }
  return r;
}

}  // namespace

#endif

void store_results(Isa isa, const Matrix& y, int64_t row, int64_t column, const float* sums, int64_t n, double factor,
                   const double* bias) {
  int64_t r = 0;
#if defined(__x86_64__)
  if (isa_covers(isa, Isa::avx2)) r = store_eights(y, row, column, sums, n, factor, bias);
#endif
  static_cast<void>(isa);
  for (; r < n; ++r) store(y, row, column + r, sums[r] * factor + bias[r]);
}

}  // namespace gearshift
