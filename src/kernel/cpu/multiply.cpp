#include "kernel/cpu/multiply.h"

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

// Eight lanes like the AVX2 path, but multiply and add round separately.
void multiply_portable(const Tiles& t) {
  constexpr int64_t kLanes = 8;
  for (int64_t m = 0; m < t.m; ++m) {
    const float* x = t.x + m * t.x_stride;
    for (int64_t n = 0; n < t.n; ++n) {
      const float* w = t.w + n * t.w_stride;
      float lanes[kLanes] = {};
      for (int64_t k = 0; k < t.k; k += kLanes) {
        for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[k + lane] * w[k + lane];
      }
      float sum[4];
      for (int64_t lane = 0; lane < 4; ++lane) sum[lane] = lanes[lane] + lanes[lane + 4];
      t.acc[m * t.acc_stride + n] += (sum[0] + sum[2]) + (sum[1] + sum[3]);
    }
  }
}

#if defined(__x86_64__)

// Tiles of 4 x 3: twelve accumulators, three weights and a product fill the sixteen registers.
constexpr int64_t kAvx2M = 4;
constexpr int64_t kAvx2N = 3;

__attribute__((target("avx2,fma"))) inline float sum_lanes(__m256 v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

template <int M, int N>
__attribute__((target("avx2,fma"))) inline void tile_avx2(const Tiles& t, int64_t m, int64_t n) {
  __m256 sum[M][N];
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) sum[i][j] = _mm256_setzero_ps();
  }
  const float* x = t.x + m * t.x_stride;
  const float* w = t.w + n * t.w_stride;
  for (int64_t k = 0; k < t.k; k += 8) {
    __m256 weight[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) weight[j] = _mm256_load_ps(w + j * t.w_stride + k);
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i) {
      const __m256 value = _mm256_load_ps(x + i * t.x_stride + k);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) sum[i][j] = _mm256_fmadd_ps(value, weight[j], sum[i][j]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) t.acc[(m + i) * t.acc_stride + n + j] += sum_lanes(sum[i][j]);
  }
}

template <int M>
__attribute__((target("avx2,fma"))) void rows_avx2(const Tiles& t, int64_t m) {
  int64_t n = 0;
  for (; n + kAvx2N <= t.n; n += kAvx2N) tile_avx2<M, kAvx2N>(t, m, n);
  for (; n < t.n; ++n) tile_avx2<M, 1>(t, m, n);
}

__attribute__((target("avx2,fma"))) void multiply_avx2(const Tiles& t) {
  int64_t m = 0;
  for (; m + kAvx2M <= t.m; m += kAvx2M) rows_avx2<kAvx2M>(t, m);
  for (; m < t.m; ++m) rows_avx2<1>(t, m);
}

// Tiles of 4 x 6 in 32 registers.
constexpr int64_t kAvx512M = 4;
constexpr int64_t kAvx512N = 6;

template <int M, int N>
__attribute__((target("avx512f"))) inline void tile_avx512(const Tiles& t, int64_t m, int64_t n) {
  __m512 sum[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sum[i][j] = _mm512_setzero_ps();
  }
  const float* x = t.x + m * t.x_stride;
  const float* w = t.w + n * t.w_stride;
  for (int64_t k = 0; k < t.k; k += 16) {
    __m512 weight[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) weight[j] = _mm512_load_ps(w + j * t.w_stride + k);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const __m512 value = _mm512_load_ps(x + i * t.x_stride + k);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) sum[i][j] = _mm512_fmadd_ps(value, weight[j], sum[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) t.acc[(m + i) * t.acc_stride + n + j] += _mm512_reduce_add_ps(sum[i][j]);
  }
}

template <int M>
__attribute__((target("avx512f"))) void rows_avx512(const Tiles& t, int64_t m) {
  int64_t n = 0;
  for (; n + kAvx512N <= t.n; n += kAvx512N) tile_avx512<M, kAvx512N>(t, m, n);
  for (; n < t.n; ++n) tile_avx512<M, 1>(t, m, n);
}

__attribute__((target("avx512f"))) void multiply_avx512(const Tiles& t) {
  int64_t m = 0;
  for (; m + kAvx512M <= t.m; m += kAvx512M) rows_avx512<kAvx512M>(t, m);
  for (; m < t.m; ++m) rows_avx512<1>(t, m);
}

#endif

}  // namespace

Multiply multiply_for(Isa isa) {
#if defined(__x86_64__)
  if (isa_covers(isa, Isa::avx512)) return multiply_avx512;
  if (isa_covers(isa, Isa::avx2)) return multiply_avx2;
#endif
  static_cast<void>(isa);
  return multiply_portable;
}

}  // namespace gearshift
