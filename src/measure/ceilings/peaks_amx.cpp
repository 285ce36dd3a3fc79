#if defined(__x86_64__)
#include <immintrin.h>

#include "measure/ceilings/peaks_x86.h"

namespace gearshift {

namespace {

// Palette 1: eight tiles of 16 rows x 64 bytes (Intel SDM volume 1, section 18.2).
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// The intrinsic tells compilers of the first eight bytes only, and the others are then never written.
void load(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" : : "m"(config)); }

}  // namespace

// Tiles 0 to 3 are sums; 4 and 5 stand for activations, 6 and 7 for weights.
__attribute__((target("amx-tile,amx-int8"))) void peak_amx_dpbusd(int64_t rounds) {
  const TileConfig config;
  load(config);  // zeroes all tiles
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_release();
}

__attribute__((target("amx-tile,amx-bf16"))) void peak_amx_dpbf16(int64_t rounds) {
  const TileConfig config;
  load(config);
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

}  // namespace gearshift
#endif
