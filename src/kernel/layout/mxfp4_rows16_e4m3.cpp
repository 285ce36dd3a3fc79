#include "kernel/layout/mxfp4_rows16_e4m3.h"

#include <algorithm>
#include <cmath>

#include "kernel/layout/mx_scales.h"
#include "kernel/layout/rows16_e4m3.h"

namespace gearshift {

namespace {

constexpr int kBinades = 12;  // of one pass
constexpr int kMostPasses = 16;
constexpr int64_t kPassesBytes = 64;

uint8_t e4m3_scale_byte(int scale, int largest) {
  const int below = std::min(largest - scale, kBinades * kMostPasses - 1);
  return static_cast<uint8_t>(below / kBinades << 4 | (kBinades - 1 - below % kBinades));
}
int scale_of_e4m3_byte(uint8_t byte, int largest) {
  return largest - (byte >> 4) * kBinades - (kBinades - 1 - (byte & 15));
}

int64_t e4m3_scale_place(int64_t r, int64_t group_in_unit) {
  return kUnitCodeBytes + r % 8 * 8 + r / 8 * 4 + group_in_unit;
}

int e4m3_sign_bit(int number) { return number % 4 * 8 + (number < 4 ? 7 : 3); }
uint32_t put_e2m1_number(int number, uint32_t code) {
  return (code & 7) << (4 * number) | (code >> 3) << e4m3_sign_bit(number);
}
uint32_t get_e2m1_number(uint32_t word, int number) {
  return (word >> (4 * number) & 7) | (word >> e4m3_sign_bit(number) & 1) << 3;
}

void pack_mxfp4_e4m3_unit(const LayerWeights& weights, size_t p, int64_t row0, int64_t unit, uint8_t* out) {
  const PartWeights& part = weights.parts[p];
  const int64_t k = weights.spec->k;
  uint32_t words[kUnitCodeBytes / 4] = {};
  const int64_t column0 = unit * kUnitColumns, columns = std::min(kUnitColumns, k - column0);
  for (int64_t r = 0; r < std::min(kUnitRows, part.n - row0); ++r) {
    const uint8_t* codes = part.weight.data() + (row0 + r) * (k / 2) + column0 / 2;
    const uint8_t* scales = mx_scales_of_row(part, row0 + r, k) + column0 / kMxGroup;
    const int largest = largest_mx_scale(part, row0 + r, k);
    for (int64_t c = 0; c < columns; ++c) {
      const E4m3Place place = e4m3_place(r, c);
      words[place.word / 4] |= put_e2m1_number(place.number, (codes[c / 2] >> (c % 2 * 4)) & 15u);
    }
    for (int64_t g = 0; g < ceil_div(columns, kMxGroup); ++g)
      out[e4m3_scale_place(r, g)] = e4m3_scale_byte(scales[g], largest);
  }
  std::memcpy(out, words, sizeof words);
}

bool is_block_of_zeros(const PartWeights& part, int64_t row, int64_t k, int64_t group) {
  const uint8_t* codes = part.weight.data() + row * (k / 2) + group * kMxGroup / 2;
  return std::all_of(codes, codes + std::min(kMxGroup, k - group * kMxGroup) / 2,
                     [](uint8_t pair) { return (pair & 0x77) == 0; });
}

uint32_t largest_pass(const LayerWeights& weights, [[maybe_unused]] int threads) {
  const int64_t k = weights.spec->k;
  int passes = 0;
  for (const PartWeights& part : weights.parts) {
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : passes)
    for (int64_t row = 0; row < part.n; ++row) {
      const int largest = largest_mx_scale(part, row, k);
      for (int64_t g = 0; g < ceil_div(k, kMxGroup); ++g) {
        const int pass = e4m3_scale_byte(mx_scales_of_row(part, row, k)[g], largest) >> 4;
        if (pass > passes && !is_block_of_zeros(part, row, k, g)) passes = pass;
      }
    }
  }
  return static_cast<uint32_t>(passes);
}

void pack_mxfp4_e4m3(const LayerWeights& weights, uint8_t* out, int threads) {
  const int64_t k = weights.spec->k;
  pack_rows16(
      weights, out, kE4m3UnitBytes, threads,
      [&](size_t part, int64_t row0, int64_t unit, uint8_t* at) {
        pack_mxfp4_e4m3_unit(weights, part, row0, unit, at);
      },
      [&](size_t part, int64_t row) {
        return std::ldexp(1.0f, largest_mx_scale(weights.parts[part], row, k) - 127 - (kBinades - 1) + 5);
      });
  uint8_t* at = out + mxfp4_e4m3_passes_at(*weights.spec);
  std::memset(at, 0, kPassesBytes);
  const uint32_t passes = largest_pass(weights, threads);
  std::memcpy(at, &passes, sizeof passes);
}

void unpack_mxfp4_e4m3(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  const auto* record = reinterpret_cast<const RowRecord*>(packed + rows16_records_at(layer, kE4m3UnitBytes));
  int64_t slab_row = 0;  // of the record: parts start on a slab of their own
  visit_rows16(layer, packed, kE4m3UnitBytes, [&](size_t part, int64_t row, int64_t r, const uint8_t* units) {
    if (row == 0 && part > 0) slab_row = ceil_div(slab_row, kUnitRows) * kUnitRows;
    RowRecord of_row;
    std::memcpy(&of_row, record + slab_row++, sizeof of_row);
    const int largest = std::ilogb(of_row.factor) + 127 + (kBinades - 1) - 5;
    for (int64_t c = 0; c < layer.k; ++c) {
      const E4m3Place place = e4m3_place(r, c % kUnitColumns);
      uint32_t word;
      std::memcpy(&word, units + c / kUnitColumns * kE4m3UnitBytes + place.word, 4);
      *codes++ = static_cast<uint8_t>(get_e2m1_number(word, place.number));
    }
    for (int64_t g = 0; g < ceil_div(layer.k, kMxGroup); ++g)
      *scales++ =
          static_cast<uint8_t>(scale_of_e4m3_byte(units[g / 4 * kE4m3UnitBytes + e4m3_scale_place(r, g % 4)], largest));
  });
}

int64_t bytes_mxfp4_e4m3(const LayerSpec& layer) { return mxfp4_e4m3_passes_at(layer) + kPassesBytes; }

}  // namespace

int64_t mxfp4_e4m3_passes_at(const LayerSpec& layer) { return rows16_bytes(layer, kE4m3UnitBytes); }

const Layout mxfp4_rows16_e4m3{"mxfp4_rows16_e4m3", 1, bytes_mxfp4_e4m3, pack_mxfp4_e4m3, unpack_mxfp4_e4m3,
                               Platform::cuda};

}  // namespace gearshift
