// Scales of one panel become fp32 once per block, so that multipliers know one type of them.
#include <bit>
#include <cstring>

#include "format/bf16.h"
#include "format/e4m3.h"
#include "format/e8m0.h"
#include "format/fp16.h"
#include "kernel/cpu/stage/pieces.h"
#include "kernel/cpu/stage/x86.h"

namespace gearshift {

namespace {

uint16_t halfword(const uint8_t* at) {
  uint16_t value;
  std::memcpy(&value, at, 2);
  return value;
}

void decode_portable(DType dtype, const uint8_t* scales, int64_t groups, float* out, int64_t stride) {
  for (int64_t g = 0; g < groups; ++g, out += stride) {
    for (int64_t r = 0; r < 16; ++r) {
      const int64_t at = g * 16 + r;
      switch (dtype) {
        case DType::f8_e4m3:
          out[r] = format::e4m3_table[scales[at]];
          break;
        case DType::f8_e8m0:
          out[r] = format::e8m0_table[scales[at]];
          break;
        case DType::f16:
          out[r] = format::decode_fp16(halfword(scales + 2 * at));
          break;
        case DType::bf16:
          out[r] = format::decode_bf16(halfword(scales + 2 * at));
          break;
        default:
          std::memcpy(out + r, scales + 4 * at, 4);
      }
    }
  }
}

#if defined(__x86_64__)

GEARSHIFT_AVX2 inline __m128i eight_bytes(const uint8_t* at) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
}
GEARSHIFT_AVX2 inline __m128i eight_words(const uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// Seven bits of e4m3 under an fp16 exponent are the value times 2^-8, subnormals too.
GEARSHIFT_AVX2 inline __m256 eight_e4m3(const uint8_t* at) {
  const __m128i words = _mm_slli_epi16(_mm_cvtepi8_epi16(eight_bytes(at)), 7);
  const __m128i bits = _mm_and_si128(words, _mm_set1_epi16(static_cast<int16_t>(0xbf80)));
  return _mm256_mul_ps(_mm256_cvtph_ps(bits), _mm256_set1_ps(0x1p8f));
}
// The exponent field; code 0 is 2^-127, a denormal.
GEARSHIFT_AVX2 inline __m256 eight_e8m0(const uint8_t* at) {
  const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu8_epi32(eight_bytes(at)), 23);
  return _mm256_castsi256_ps(_mm256_max_epi32(bits, _mm256_set1_epi32(0x00400000)));
}
GEARSHIFT_AVX2 inline __m256 eight_bf16(const uint8_t* at) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(eight_words(at)), 16));
}

template <int Bytes, class F>
GEARSHIFT_AVX2 inline __attribute__((always_inline)) void each_eight(const uint8_t* scales, int64_t groups, float* out,
                                                                     int64_t stride, const F& decode) {
  for (int64_t g = 0; g < groups; ++g, out += stride, scales += 16 * Bytes) {
    _mm256_storeu_ps(out, decode(scales));
    _mm256_storeu_ps(out + 8, decode(scales + 8 * Bytes));
  }
}

GEARSHIFT_AVX2 void decode_avx2(DType dtype, const uint8_t* scales, int64_t groups, float* out, int64_t stride) {
  switch (dtype) {
    case DType::f8_e4m3:
      return each_eight<1>(scales, groups, out, stride,
                           [](const uint8_t* at) GEARSHIFT_AVX2 { return eight_e4m3(at); });
    case DType::f8_e8m0:
      return each_eight<1>(scales, groups, out, stride,
                           [](const uint8_t* at) GEARSHIFT_AVX2 { return eight_e8m0(at); });
    case DType::f16:
      return each_eight<2>(scales, groups, out, stride,
                           [](const uint8_t* at) GEARSHIFT_AVX2 { return _mm256_cvtph_ps(eight_words(at)); });
    case DType::bf16:
      return each_eight<2>(scales, groups, out, stride,
                           [](const uint8_t* at) GEARSHIFT_AVX2 { return eight_bf16(at); });
    default:
      return each_eight<4>(scales, groups, out, stride, [](const uint8_t* at) GEARSHIFT_AVX2 {
        return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
      });
  }
}

#endif

}  // namespace

void decode_scales(Isa isa, DType dtype, const uint8_t* scales, int64_t groups, float* out, int64_t stride) {
#if defined(__x86_64__)
  if (isa_covers(isa, Isa::avx2)) return decode_avx2(dtype, scales, groups, out, stride);
#endif
  static_cast<void>(isa);
  decode_portable(dtype, scales, groups, out, stride);
}

}  // namespace gearshift
