// Codes, scales and zero points of panels as they lie in memory, read side by side: for multipliers that decode in
// registers, in 512 bits.
#pragma once

#include "gearshift/device.h"
#include "kernel/cpu/stage/pieces.h"
#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

namespace gearshift {

enum class StoredScales : uint8_t { e4m3, e8m0, floats };

// P panels at a block; missing ones read the first.
template <int P>
struct PanelStreams {
  const uint8_t* codes[P];
  const uint8_t* scales[P];
  const uint8_t* zeros[P];

  explicit PanelStreams(const ProductArgs& args) {
    for (int p = 0; p < P; ++p) {
      const int64_t at = p < args.panels ? p * args.panel_stride : 0;
      codes[p] = args.weights + at;
      scales[p] = args.stored_scales + at;
      zeros[p] = args.stored_zeros + at;
    }
  }

  // The next scales of panel p as fp32; those of e4m3 times 2^-8.
  template <StoredScales Scales>
  GEARSHIFT_AVX512 inline __attribute__((always_inline)) __m512 scale(int p, const ProductArgs& args) {
    const uint8_t* at = scales[p];
    const auto bytes = [&]() GEARSHIFT_AVX512 { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
    if constexpr (Scales != StoredScales::floats) {
      scales[p] += 16;
      prefetch_line(at + args.scales_ahead);
      if constexpr (Scales == StoredScales::e8m0) {
        // The exponent field; code 0 is 2^-127, a denormal.
        const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes()), 23);
        return _mm512_castsi512_ps(_mm512_max_epi32(bits, _mm512_set1_epi32(0x00400000)));
      }
      // Seven bits of e4m3 under an fp16 exponent are the value times 2^-8, subnormals too.
      const __m256i words = _mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes()), 7);
      const __m256i halves = _mm256_and_si256(words, _mm256_set1_epi16(static_cast<int16_t>(0xbf80)));
      return _mm512_cvtph_ps(halves);
    } else if (args.stored_type == DType::f32) {
      scales[p] += 64;
      prefetch_line(at + args.scales_ahead);
      return _mm512_loadu_ps(at);
    } else {
      scales[p] += 32;
      prefetch_line(at + args.scales_ahead);
      const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
      if (args.stored_type == DType::f16) return _mm512_cvtph_ps(halves);
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
    }
  }
};

}  // namespace gearshift
#endif
