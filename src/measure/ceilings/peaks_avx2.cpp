#if defined(__x86_64__)
#include <immintrin.h>

#include "measure/ceilings/peaks_x86.h"

// Assembler keeps the loops as written: compilers copy tied accumulators of intrinsics or fold constant operands.

namespace gearshift {

__attribute__((target("avx2,fma"))) void peak_avx2_fma(int64_t rounds) {
  __m256 sum[kSumsAvx2];
  const __m256 x = _mm256_set1_ps(0.5f), w = _mm256_set1_ps(0.25f);
#pragma GCC unroll 16
  for (int i = 0; i < kSumsAvx2; ++i) sum[i] = _mm256_setzero_ps();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kSumsAvx2; ++i) __asm__ volatile("vfmadd231ps %1,%2,%0" : "+x"(sum[i]) : "x"(x), "x"(w));
  }
}

__attribute__((target("avx2"))) void peak_avx2_maddubs(int64_t rounds) {
  __m256i sum[kSumsAvx2];
  const __m256i x = _mm256_set1_epi8(3), w = _mm256_set1_epi8(2), ones = _mm256_set1_epi16(1);
#pragma GCC unroll 16
  for (int i = 0; i < kSumsAvx2; ++i) sum[i] = _mm256_setzero_si256();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kSumsAvx2; ++i) {
      __m256i product;
      __asm__ volatile("vpmaddubsw %3,%2,%1\n\tvpmaddwd %4,%1,%1\n\tvpaddd %1,%0,%0"
                       : "+x"(sum[i]), "=&x"(product)
                       : "x"(w), "x"(x), "x"(ones));
    }
  }
}

}  // namespace gearshift
#endif
