// Tiles of AMX: eight registers of up to 16 rows x 64 bytes, set up by every function that uses them.
#pragma once

#include <initializer_list>

#include "kernel/cpu/stage/x86.h"

#if defined(__x86_64__)

#define GEARSHIFT_AMX \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16,amx-tile,amx-int8,amx-bf16")))

namespace gearshift {

// Palette 1 (Intel SDM volume 1, section 18.2). Tiles 0 1 | 2 3 are sums of the first and the last rows of x with two
// panels of 16 weight rows, 4 and 5 those rows of x, 6 and 7 the panels.
struct alignas(64) AmxConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {};

  // For w rows of x, 1 to 32.
  explicit AmxConfig(int64_t w) {
    const auto first = static_cast<uint8_t>(w < 16 ? w : 16), last = static_cast<uint8_t>(w < 16 ? 0 : w - 16);
    // A tile without rows may not be configured; nothing reads it.
    for (const int tile : {0, 1, 4}) rows[tile] = first;
    for (const int tile : {2, 3, 5}) rows[tile] = last == 0 ? uint8_t{1} : last;
    rows[6] = rows[7] = 16;
  }
  // The intrinsic tells compilers of the first eight bytes only, and the others are then never written.
  void load() const { __asm__ volatile("ldtilecfg %0" : : "m"(*this)); }
};

// What the tile intrinsics read and write, compilers know nothing of.
inline __attribute__((always_inline)) void settle_memory() { __asm__ volatile("" : : : "memory"); }

}  // namespace gearshift
#endif
