#include "kernel/layout/int4_rows16_e4m3.h"

#include <algorithm>

#include "kernel/layout/int4_rows16_mma.h"
#include "kernel/layout/rows16_e4m3.h"
#include "kernel/output.h"
#include "kernel/parts.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

constexpr int64_t kInt4ScaleBytes = sizeof(float);

int int4_number_shift(int number) { return 8 * (number % 4) + 4 * (number / 4); }
// q -8 .. 7.
uint32_t put_int4_number(int number, int q) {
  const auto magnitude = static_cast<uint32_t>(q < 0 ? -1 - q : q);
  return (magnitude | (q < 0 ? 8u : 0u)) << int4_number_shift(number);
}
int get_int4_number(uint32_t word, int number) {
  const int code = static_cast<int>(word >> int4_number_shift(number) & 15);
  return code < 8 ? code : -1 - (code - 8);
}

void pack_int4_e4m3_unit(const LayerWeights& weights, size_t p, int64_t row0, int64_t unit, uint8_t* out) {
  const PartWeights& part = weights.parts[p];
  const StoredWeights stored(weights, p);
  uint32_t words[kUnitCodeBytes / 4] = {};
  float values[kUnitColumns];
  const int64_t column0 = unit * kUnitColumns, columns = std::min(kUnitColumns, weights.spec->k - column0);
  for (int64_t r = 0; r < std::min(kUnitRows, part.n - row0); ++r) {
    stored.codes(row0 + r, column0, columns, values);
    for (int64_t c = 0; c < columns; ++c) {
      const E4m3Place place = e4m3_place(r, c);
      words[place.word / 4] |= put_int4_number(place.number, static_cast<int>(values[c]));
    }
    const float scale = stored.scale(row0 + r, stored.group_of(column0));
    std::memcpy(out + kUnitCodeBytes + r * kInt4ScaleBytes, &scale, sizeof scale);
  }
  std::memcpy(out, words, sizeof words);
}

void pack_int4_e4m3(const LayerWeights& weights, uint8_t* out, int threads) {
  const LayerSpec& layer = *weights.spec;
  std::vector<float> factors;
  for (size_t p = 0; p < weights.parts.size(); ++p)
    factors.push_back(static_cast<float>(StoredWeights(weights, p).factor() * 512));
  pack_rows16(
      weights, out, kE4m3UnitBytes, threads,
      [&](size_t part, int64_t row0, int64_t unit, uint8_t* at) { pack_int4_e4m3_unit(weights, part, row0, unit, at); },
      [&](size_t part, int64_t) { return factors[part]; });
  const int64_t pre_scale_at = int4_e4m3_pre_scale_at(layer);
  if (pre_scale_at < 0) return;
  uint8_t* at = out + pre_scale_at;
  for (const PartWeights& part : weights.parts) {
    for (int64_t k = 0; k < layer.k; ++k, at += 4) {
      const float value = pre_scale_value(part, k);
      std::memcpy(at, &value, sizeof value);
    }
  }
}

void unpack_int4_e4m3(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  const int64_t groups = int4_groups_of_row(layer);
  const int64_t columns_a_group = groups == 1 ? layer.k : layer.scheme.weight.grouping.cols;
  visit_rows16(layer, packed, kE4m3UnitBytes, [&](size_t, int64_t, int64_t r, const uint8_t* units) {
    for (int64_t c = 0; c < layer.k; ++c) {
      const E4m3Place place = e4m3_place(r, c % kUnitColumns);
      uint32_t word;
      std::memcpy(&word, units + c / kUnitColumns * kE4m3UnitBytes + place.word, 4);
      *codes++ = static_cast<uint8_t>(get_int4_number(word, place.number) + 8);
    }
    for (int64_t g = 0; g < groups; ++g, scales += kInt4ScaleBytes)
      std::memcpy(scales,
                  units + g * columns_a_group / kUnitColumns * kE4m3UnitBytes + kUnitCodeBytes + r * kInt4ScaleBytes,
                  kInt4ScaleBytes);
  });
}

int64_t bytes_int4_e4m3(const LayerSpec& layer) {
  const int64_t pre_scale_at = int4_e4m3_pre_scale_at(layer);
  if (pre_scale_at < 0) return rows16_bytes(layer, kE4m3UnitBytes);
  return pre_scale_at + static_cast<int64_t>(part_count(layer)) * layer.k * 4;
}

}  // namespace

int64_t int4_e4m3_pre_scale_at(const LayerSpec& layer) {
  return layer.scheme.pre_scale ? rows16_bytes(layer, kE4m3UnitBytes) : -1;
}

const Layout int4_rows16_e4m3{"int4_rows16_e4m3", 1, bytes_int4_e4m3, pack_int4_e4m3, unpack_int4_e4m3, Platform::cuda};

}  // namespace gearshift
