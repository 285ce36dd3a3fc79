#if defined(__x86_64__)
#include <immintrin.h>

#include "measure/ceilings/peaks_x86.h"

namespace gearshift {

__attribute__((target("avx512f"))) void peak_avx512_fma(int64_t rounds) {
  __m512 sum[kSumsAvx512];
  const __m512 x = _mm512_set1_ps(0.5f), w = _mm512_set1_ps(0.25f);
#pragma GCC unroll 28
  for (int i = 0; i < kSumsAvx512; ++i) sum[i] = _mm512_setzero_ps();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 28
    for (int i = 0; i < kSumsAvx512; ++i) __asm__ volatile("vfmadd231ps %1,%2,%0" : "+v"(sum[i]) : "v"(x), "v"(w));
  }
}

__attribute__((target("avx512f,avx512bw"))) void peak_avx512_maddubs(int64_t rounds) {
  __m512i sum[kSumsAvx512];
  const __m512i x = _mm512_set1_epi8(3), w = _mm512_set1_epi8(2), ones = _mm512_set1_epi16(1);
#pragma GCC unroll 28
  for (int i = 0; i < kSumsAvx512; ++i) sum[i] = _mm512_setzero_si512();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 28
    for (int i = 0; i < kSumsAvx512; ++i) {
      __m512i product;
      __asm__ volatile("vpmaddubsw %3,%2,%1\n\tvpmaddwd %4,%1,%1\n\tvpaddd %1,%0,%0"
                       : "+v"(sum[i]), "=&v"(product)
                       : "v"(w), "v"(x), "v"(ones));
    }
  }
}

__attribute__((target("avx512f"))) void peak_avx512_dpbusd(int64_t rounds) {
  __m512i sum[kSumsAvx512];
  const __m512i x = _mm512_set1_epi8(3), w = _mm512_set1_epi8(2);
#pragma GCC unroll 28
  for (int i = 0; i < kSumsAvx512; ++i) sum[i] = _mm512_setzero_si512();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 28
    for (int i = 0; i < kSumsAvx512; ++i) __asm__ volatile("vpdpbusd %1,%2,%0" : "+v"(sum[i]) : "v"(x), "v"(w));
  }
}

__attribute__((target("avx512f"))) void peak_avx512_dpbf16(int64_t rounds) {
  __m512 sum[kSumsAvx512];
  const __m512i x = _mm512_set1_epi16(0x3F00), w = _mm512_set1_epi16(0x3E80);  // 0.5 and 0.25
#pragma GCC unroll 28
  for (int i = 0; i < kSumsAvx512; ++i) sum[i] = _mm512_setzero_ps();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 28
    for (int i = 0; i < kSumsAvx512; ++i) __asm__ volatile("vdpbf16ps %1,%2,%0" : "+v"(sum[i]) : "v"(x), "v"(w));
  }
}

}  // namespace gearshift
#endif
