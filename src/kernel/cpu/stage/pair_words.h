// Nibbles of layout nibbles_rows16, seen as words, to bf16: pairs of columns 0 2, 4 6, 1 3, 5 7.
#pragma once

#include <bit>

#include "kernel/cpu/stage/pieces.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

// What words stand for by their lowest bits.
template <bool Zeros>
struct PairWords {
  // Sixteen values twice, so that an index needs no mask; or, for weights with zero points, the integers from -16 on,
  // looked up by code - zero + 16.
  __m512i table;
  __m512 base;  // of an offset: a code of 0 stands for table.value[0]

  GEARSHIFT_AVX512 explicit PairWords(const NibbleTable& nibbles) : base(_mm512_set1_ps(nibbles.value[0] + 16)) {
    alignas(64) uint16_t entries[32];
    for (size_t i = 0; i < 32; ++i) {
      const float value = Zeros ? static_cast<float>(i) - 16 : nibbles.value[i % 16];
      entries[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    }
    table = _mm512_load_si512(entries);
  }
  GEARSHIFT_AVX512 inline __attribute__((always_inline)) __m512i operator()(__m512i codes, __m512i offset) const {
    if constexpr (Zeros) codes = _mm512_add_epi16(_mm512_and_si512(codes, _mm512_set1_epi16(15)), offset);
    return _mm512_permutexvar_epi16(codes, table);
  }
  // Of the sixteen zero points of a panel, for both words of a row.
  GEARSHIFT_AVX512 inline __attribute__((always_inline)) __m512i offset(__m512 zeros) const {
    const __m512i word = _mm512_cvtps_epi32(_mm512_sub_ps(base, zeros));
    return _mm512_or_si512(word, _mm512_slli_epi32(word, 16));
  }
};

}  // namespace gearshift
#endif
