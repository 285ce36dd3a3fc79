// Intrinsics, and what the files of vector code share.
#pragma once

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC's own AVX-512 header leaves registers undefined on purpose and warns about it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstdint>

#define GEARSHIFT_AVX2 __attribute__((target("avx2,fma,f16c")))
#define GEARSHIFT_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define GEARSHIFT_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define GEARSHIFT_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16")))

namespace gearshift {

// How far ahead of their use codes are fetched: the hardware alone follows such loops too late.
inline constexpr int64_t kPrefetchBytes = 4096;
// The same where several streams are read side by side.
inline constexpr int64_t kNearBytes = 512;

template <int Bytes, int64_t Ahead = kPrefetchBytes>
inline __attribute__((always_inline)) void prefetch_ahead(const uint8_t* at) {
#pragma GCC unroll 16
  for (int line = 0; line < Bytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(at + Ahead + line), _MM_HINT_T0);
  }
}

inline __attribute__((always_inline)) void prefetch_line(const uint8_t* at) {
  _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0);
}

}  // namespace gearshift
#endif
