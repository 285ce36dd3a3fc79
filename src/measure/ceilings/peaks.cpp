#include "measure/ceilings/peaks.h"

#include "measure/ceilings/peaks_x86.h"

namespace gearshift {

namespace {

constexpr std::string_view kGflops = "GFLOP/s", kGops = "GOP/s";

// What the compiler makes of plain loops, whose sums it may not reorder: independent lanes.
constexpr int kPortableLanes = 64;

void peak_portable_fp32(int64_t rounds) {
  float sum[kPortableLanes] = {};
  float x = 0.5f;
  for (int64_t round = 0; round < rounds; ++round) {
    __asm__ volatile("" : "+m"(x));  // else every round is the same
    for (float& lane : sum) lane += x * 0.25f;
  }
  __asm__ volatile("" : : "m"(sum));
}

void peak_portable_int8(int64_t rounds) {
  int8_t x[kPortableLanes], w[kPortableLanes];
  int32_t sum[kPortableLanes] = {};
  for (int i = 0; i < kPortableLanes; ++i) x[i] = static_cast<int8_t>(i), w[i] = 3;
  for (int64_t round = 0; round < rounds; ++round) {
    __asm__ volatile("" : "+m"(x));
    for (int i = 0; i < kPortableLanes; ++i) sum[i] += x[i] * w[i];
  }
  __asm__ volatile("" : : "m"(sum));
}

constexpr Peak kPortableFp32{"fp32", kGflops, "compiled loop", 2.0 * kPortableLanes, peak_portable_fp32};

}  // namespace

std::array<Peak, 3> peaks_for([[maybe_unused]] Isa isa) {
  Peak fp32 = kPortableFp32;
  Peak int8{"int8", kGops, "compiled loop", 2.0 * kPortableLanes, peak_portable_int8};
#if defined(__x86_64__)
  if (isa_covers(isa, Isa::avx512)) {
    fp32 = {"fp32", kGflops, "vfmadd231ps zmm", 32.0 * kSumsAvx512, peak_avx512_fma};
    int8 = {"int8", kGops, "vpmaddubsw + vpmaddwd + vpaddd zmm", 128.0 * kSumsAvx512, peak_avx512_maddubs};
  } else if (isa_covers(isa, Isa::avx2)) {
    fp32 = {"fp32", kGflops, "vfmadd231ps ymm", 16.0 * kSumsAvx2, peak_avx2_fma};
    int8 = {"int8", kGops, "vpmaddubsw + vpmaddwd + vpaddd ymm", 64.0 * kSumsAvx2, peak_avx2_maddubs};
  }
  if (isa_covers(isa, Isa::avx512_vnni)) {
    int8 = {"int8", kGops, "vpdpbusd zmm", 128.0 * kSumsAvx512, peak_avx512_dpbusd};
  }
#endif
  // A bf16 number becomes an fp32 number by a shift; the product is then fp32's.
  Peak bf16{"bf16", fp32.unit, fp32.instruction, fp32.operations, fp32.run};
#if defined(__x86_64__)
  if (isa_covers(isa, Isa::avx512_bf16)) {
    bf16 = {"bf16", kGflops, "vdpbf16ps zmm", 64.0 * kSumsAvx512, peak_avx512_dpbf16};
  }
  if (isa_covers(isa, Isa::amx)) {
    bf16 = {"bf16", kGflops, "tdpbf16ps", 2.0 * 16 * 16 * 32 * kSumsAmx, peak_amx_dpbf16};
    int8 = {"int8", kGops, "tdpbusd", 2.0 * 16 * 16 * 64 * kSumsAmx, peak_amx_dpbusd};
  }
#endif
  return {fp32, bf16, int8};
}

}  // namespace gearshift
