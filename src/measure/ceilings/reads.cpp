#include "measure/ceilings/reads.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gearshift {

namespace {

constexpr size_t kLine = 64;

template <int Streams, int Prefetch>
uint64_t read_portable(const uint8_t* bytes, size_t count) {
  const size_t length = count / Streams;
  uint64_t sum[8] = {};
  for (size_t i = 0; i + kLine <= length; i += kLine) {
    for (size_t stream = 0; stream < Streams; ++stream) {
      const uint8_t* line = bytes + stream * length + i;
      if (Prefetch != 0) __builtin_prefetch(line + Prefetch);
      for (size_t word = 0; word < 8; ++word) {
        uint64_t value;
        std::memcpy(&value, line + 8 * word, sizeof value);
        sum[word] += value;
      }
    }
  }
  uint64_t all = 0;
  for (const uint64_t part : sum) all += part;
  return all;
}

template <int Streams, int Prefetch>
constexpr ReadShape portable() {
  return {Streams, Prefetch, read_portable<Streams, Prefetch>};
}

#if defined(__x86_64__)

template <int Streams, int Prefetch>
__attribute__((target("avx2"))) uint64_t read_avx2(const uint8_t* bytes, size_t count) {
  const size_t length = count / Streams;
  __m256i sum[4];
  for (__m256i& lane : sum) lane = _mm256_setzero_si256();
  for (size_t i = 0; i + 2 * kLine <= length; i += 2 * kLine) {
#pragma GCC unroll 8
    for (size_t stream = 0; stream < Streams; ++stream) {
      const uint8_t* line = bytes + stream * length + i;
#pragma GCC unroll 4
      for (int part = 0; part < 4; ++part) {
        if (Prefetch != 0 && part % 2 == 0)
          _mm_prefetch(reinterpret_cast<const char*>(line + 32 * part + Prefetch), _MM_HINT_T0);
        sum[part] = _mm256_add_epi64(sum[part], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line + 32 * part)));
      }
    }
  }
  const __m256i all = _mm256_add_epi64(_mm256_add_epi64(sum[0], sum[1]), _mm256_add_epi64(sum[2], sum[3]));
  uint64_t words[4];
  std::memcpy(words, &all, sizeof words);
  return words[0] + words[1] + words[2] + words[3];
}

template <int Streams, int Prefetch>
constexpr ReadShape avx2() {
  return {Streams, Prefetch, read_avx2<Streams, Prefetch>};
}

template <int Streams, int Prefetch>
__attribute__((target("avx512f"))) uint64_t read_avx512(const uint8_t* bytes, size_t count) {
  const size_t length = count / Streams;
  __m512i sum[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  for (size_t i = 0; i + 2 * kLine <= length; i += 2 * kLine) {
#pragma GCC unroll 8
    for (size_t stream = 0; stream < Streams; ++stream) {
      const uint8_t* line = bytes + stream * length + i;
#pragma GCC unroll 2
      for (int part = 0; part < 2; ++part) {
        if (Prefetch != 0) _mm_prefetch(reinterpret_cast<const char*>(line + kLine * part + Prefetch), _MM_HINT_T0);
        sum[part] = _mm512_add_epi64(sum[part], _mm512_loadu_si512(line + kLine * part));
      }
    }
  }
  const __m512i all = _mm512_add_epi64(sum[0], sum[1]);
  uint64_t words[8];
  std::memcpy(words, &all, sizeof words);
  uint64_t total = 0;
  for (const uint64_t word : words) total += word;
  return total;
}

template <int Streams, int Prefetch>
constexpr ReadShape avx512() {
  return {Streams, Prefetch, read_avx512<Streams, Prefetch>};
}

#endif

}  // namespace

std::vector<ReadShape> read_shapes([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  if (isa_covers(isa, Isa::avx512)) {
    return {avx512<1, 0>(), avx512<1, 2048>(), avx512<1, 4096>(), avx512<2, 0>(),   avx512<2, 1024>(),
            avx512<4, 0>(), avx512<4, 1024>(), avx512<4, 4096>(), avx512<8, 1024>()};
  }
  if (isa_covers(isa, Isa::avx2)) {
    return {avx2<1, 0>(), avx2<1, 2048>(), avx2<1, 4096>(), avx2<2, 0>(),   avx2<2, 1024>(),
            avx2<4, 0>(), avx2<4, 1024>(), avx2<4, 4096>(), avx2<8, 1024>()};
  }
#endif
  return {portable<1, 0>(), portable<1, 2048>(), portable<4, 0>(), portable<4, 1024>()};
}

}  // namespace gearshift
