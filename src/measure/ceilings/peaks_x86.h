// The loops of peaks.h for x86-64, one file per instruction set.
#pragma once

#include <cstdint>

namespace gearshift {

// Independent sums in flight, as many as registers hold beside the operands: two a cycle times a latency of 4 cycles
// (fused multiply-add) to some 12 (dots of bf16 pairs).
inline constexpr int kSumsAvx2 = 10;
inline constexpr int kSumsAvx512 = 28;
inline constexpr int kSumsAmx = 4;

void peak_avx2_fma(int64_t rounds);        // kSumsAvx2 x vfmadd231ps ymm
void peak_avx2_maddubs(int64_t rounds);    // kSumsAvx2 x (vpmaddubsw, vpmaddwd, vpaddd) ymm
void peak_avx512_fma(int64_t rounds);      // kSumsAvx512 x vfmadd231ps zmm
void peak_avx512_maddubs(int64_t rounds);  // kSumsAvx512 x (vpmaddubsw, vpmaddwd, vpaddd) zmm
void peak_avx512_dpbusd(int64_t rounds);   // kSumsAvx512 x vpdpbusd zmm
void peak_avx512_dpbf16(int64_t rounds);   // kSumsAvx512 x vdpbf16ps zmm
void peak_amx_dpbusd(int64_t rounds);      // kSumsAmx x tdpbusd, 16 x 16 x 64
void peak_amx_dpbf16(int64_t rounds);      // kSumsAmx x tdpbf16ps, 16 x 16 x 32

}  // namespace gearshift
