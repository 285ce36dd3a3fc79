#include "kernel/layout/mxfp4_rows16_mma.h"

#include <algorithm>
#include <cmath>

#include "format/minifloat.h"
#include "kernel/layout/e2m1_word.h"
#include "kernel/layout/mx_scales.h"
#include "kernel/layout/rows16.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

constexpr int64_t kMxScalesAt = kUnitCodeBytes;

int64_t scale_place(int64_t r, int64_t group_in_unit) {
  return kMxScalesAt + r % 8 * 8 + group_in_unit / 2 * 4 + r / 8 * 2 + group_in_unit % 2;
}

void pack_mx_unit(const LayerWeights& weights, size_t p, int64_t row0, int64_t unit, uint8_t* out) {
  const PartWeights& part = weights.parts[p];
  const int64_t k = weights.spec->k;
  uint32_t words[kUnitCodeBytes / 4] = {};
  const int64_t column0 = unit * kUnitColumns, columns = std::min(kUnitColumns, k - column0);
  for (int64_t r = 0; r < std::min(kUnitRows, part.n - row0); ++r) {
    const uint8_t* codes = part.weight.data() + (row0 + r) * (k / 2) + column0 / 2;
    const uint8_t* scales = mx_scales_of_row(part, row0 + r, k) + column0 / kMxGroup;
    const int largest = largest_mx_scale(part, row0 + r, k);
    for (int64_t c = 0; c < columns; ++c) {
      const CodePlace place = place_in_unit(r, c);
      words[place.word / 4] |= put_e2m1(place.reg, place.half, (codes[c / 2] >> (c % 2 * 4)) & 15u);
    }
    for (int64_t g = 0; g < ceil_div(columns, kMxGroup); ++g)
      out[scale_place(r, g)] = static_cast<uint8_t>(std::max(0, scales[g] - largest + 254));
  }
  std::memcpy(out, words, sizeof words);
}

float row_factor(const LayerWeights& weights, size_t p, int64_t row) {
  return std::ldexp(1.0f, largest_mx_scale(weights.parts[p], row, weights.spec->k) - 128);
}

void pack_mx(const LayerWeights& weights, uint8_t* out, int threads) {
  pack_rows16(
      weights, out, kMxfp4UnitBytes, threads,
      [&](size_t part, int64_t row0, int64_t unit, uint8_t* at) { pack_mx_unit(weights, part, row0, unit, at); },
      [&](size_t part, int64_t row) { return row_factor(weights, part, row); });
}

void unpack_mx(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  const auto* record = reinterpret_cast<const RowRecord*>(packed + rows16_records_at(layer, kMxfp4UnitBytes));
  int64_t slab_row = 0;  // of the record: parts start on a slab of their own
  visit_rows16(layer, packed, kMxfp4UnitBytes, [&](size_t part, int64_t row, int64_t r, const uint8_t* units) {
    if (row == 0 && part > 0) slab_row = ceil_div(slab_row, kUnitRows) * kUnitRows;
    RowRecord of_row;
    std::memcpy(&of_row, record + slab_row++, sizeof of_row);
    const int largest = std::ilogb(of_row.factor) + 128;
    for (int64_t c = 0; c < layer.k; ++c) {
      const CodePlace place = place_in_unit(r, c % kUnitColumns);
      uint32_t word;
      std::memcpy(&word, units + c / kUnitColumns * kMxfp4UnitBytes + place.word, 4);
      *codes++ = static_cast<uint8_t>(get_e2m1(word, place.reg, place.half));
    }
    for (int64_t g = 0; g < ceil_div(layer.k, kMxGroup); ++g) {
      const uint8_t* unit = units + g / 4 * kMxfp4UnitBytes;
      *scales++ = static_cast<uint8_t>(unit[scale_place(r, g % 4)] + largest - 254);
    }
  });
}

int64_t bytes_mx(const LayerSpec& layer) { return rows16_bytes(layer, kMxfp4UnitBytes); }

}  // namespace

const Layout mxfp4_rows16_mma{"mxfp4_rows16_mma", 1, bytes_mx, pack_mx, unpack_mx, Platform::cuda};

}  // namespace gearshift
