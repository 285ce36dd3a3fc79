#include "kernel/layout/nvfp4_rows16_mma.h"

#include <algorithm>

#include "kernel/layout/e2m1_word.h"
#include "kernel/layout/rows16.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

constexpr int64_t kNvfp4Group = 16;
constexpr int64_t kNvfp4ScalesAt = kUnitCodeBytes;

// Bit position of the byte's nibbles inside a 16-bit half.
constexpr uint32_t put_nvfp4_scale(bool second, uint32_t byte) {
  return second ? (byte >> 4) | (byte & 15) << 12 : byte << 4;
}
constexpr uint32_t get_nvfp4_scale(uint32_t half, bool second) {
  return second ? (half & 15) << 4 | half >> 12 : half >> 4 & 255;
}

void pack_nvfp4_unit(const LayerWeights& weights, size_t p, int64_t row0, int64_t unit, uint8_t* out) {
  const PartWeights& part = weights.parts[p];
  const int64_t k = weights.spec->k, groups = k / kNvfp4Group;
  uint32_t words[kUnitCodeBytes / 4] = {}, scales[32] = {};
  const int64_t column0 = unit * kUnitColumns, columns = std::min(kUnitColumns, k - column0);
  for (int64_t r = 0; r < std::min(kUnitRows, part.n - row0); ++r) {
    const uint8_t* codes = part.weight.data() + (row0 + r) * (k / 2) + column0 / 2;
    const uint8_t* scale = part.scale.data() + (row0 + r) * groups + column0 / kNvfp4Group;
    for (int64_t c = 0; c < columns; ++c) {
      if ((scale[c / kNvfp4Group] & 0x7F) == 0) continue;
      const CodePlace place = place_in_unit(r, c);
      words[place.word / 4] |= put_e2m1(place.reg, place.half, (codes[c / 2] >> (c % 2 * 4)) & 15u);
    }
    for (int64_t g = 0; g < columns / kNvfp4Group; ++g)
      scales[r % 8 * 4 + g / 2] |= put_nvfp4_scale(g % 2 != 0, nvfp4_scale_byte(scale[g])) << (r / 8 * 16);
  }
  std::memcpy(out, words, sizeof words);
  std::memcpy(out + kNvfp4ScalesAt, scales, sizeof scales);
}

void pack_nvfp4(const LayerWeights& weights, uint8_t* out, int threads) {
  pack_rows16(
      weights, out, kNvfp4UnitBytes, threads,
      [&](size_t part, int64_t row0, int64_t unit, uint8_t* at) { pack_nvfp4_unit(weights, part, row0, unit, at); },
      [&](size_t part, int64_t) { return static_cast<float>(StoredWeights(weights, part).factor() * kNvfp4Leftover); });
}

void unpack_nvfp4(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  visit_rows16(layer, packed, kNvfp4UnitBytes, [&](size_t, int64_t, int64_t r, const uint8_t* units) {
    for (int64_t c = 0; c < layer.k; ++c) {
      const CodePlace place = place_in_unit(r, c % kUnitColumns);
      uint32_t word;
      std::memcpy(&word, units + c / kUnitColumns * kNvfp4UnitBytes + place.word, 4);
      *codes++ = static_cast<uint8_t>(get_e2m1(word, place.reg, place.half));
    }
    for (int64_t g = 0; g < layer.k / kNvfp4Group; ++g) {
      const int64_t in_unit = g % (kUnitColumns / kNvfp4Group);
      uint32_t word;
      std::memcpy(
          &word,
          units + g / (kUnitColumns / kNvfp4Group) * kNvfp4UnitBytes + kNvfp4ScalesAt + (r % 8 * 4 + in_unit / 2) * 4,
          4);
      *scales++ = nvfp4_scale_of_byte(get_nvfp4_scale(word >> (r / 8 * 16) & 0xFFFF, in_unit % 2 != 0));
    }
  });
}

int64_t bytes_nvfp4(const LayerSpec& layer) { return rows16_bytes(layer, kNvfp4UnitBytes); }

}  // namespace

const Layout nvfp4_rows16_mma{"nvfp4_rows16_mma", 1, bytes_nvfp4, pack_nvfp4, unpack_nvfp4, Platform::cuda};

}  // namespace gearshift
