#include "kernel/layout/int4_rows16_mma.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "format/bf16.h"
#include "kernel/layout/rows16.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

// Columns that share a scale, as far as a unit can tell.
int64_t group_columns(const LayerSpec& layer) {
  const Grouping& grouping = layer.scheme.weight.grouping;
  return grouping.kind == Grouping::Kind::group ? std::min(grouping.cols, kUnitColumns) : kUnitColumns;
}

bool is_signed(Format format) { return format == Format::int4; }

bool is_sorted_by_group(const LayerSpec& layer) {
  return layer.scheme.weight.act_order && layer.scheme.weight.grouping.kind == Grouping::Kind::group;
}

// Columns of a part sorted by group; empty where the layer's groups are in order.
std::vector<int32_t> column_order(const LayerWeights& weights, size_t p) {
  const LayerSpec& layer = *weights.spec;
  if (!is_sorted_by_group(layer)) return {};
  const StoredWeights stored(weights, p);
  std::vector<int32_t> order(static_cast<size_t>(layer.k));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return stored.group_of(a) < stored.group_of(b); });
  return order;
}
bool has_whole_groups(const LayerWeights& weights, size_t p, const std::vector<int32_t>& order) {
  const StoredWeights stored(weights, p);
  for (size_t k = 0; k < order.size(); ++k) {
    if (stored.group_of(order[k]) != static_cast<int64_t>(k) / weights.spec->scheme.weight.grouping.cols) return false;
  }
  return true;
}

// `order`: the column that comes k-th; empty: k.
void pack_int4_unit(const LayerWeights& weights, size_t p, const std::vector<int32_t>& order, int64_t row0,
                    int64_t unit, uint8_t* out) {
  const LayerSpec& layer = *weights.spec;
  const PartWeights& part = weights.parts[p];
  const StoredWeights stored(weights, p);
  const int shift = is_signed(layer.scheme.weight.format) ? 8 : 0;
  const int64_t columns = std::min(kUnitColumns, layer.k - unit * kUnitColumns);
  const int64_t width = group_columns(layer), in_unit = kUnitColumns / width;
  const bool zeros = !layer.scheme.weight.symmetric;
  uint32_t words[kUnitCodeBytes / 4] = {};
  float values[kUnitColumns];
  for (int64_t r = 0; r < std::min(kUnitRows, part.n - row0); ++r) {
    const int64_t row = row0 + r, column0 = unit * kUnitColumns;
    const auto stored_column = [&](int64_t c) { return order.empty() ? c : order[static_cast<size_t>(c)]; };
    if (order.empty()) {
      stored.codes(row, column0, columns, values);
    } else {
      for (int64_t c = 0; c < columns; ++c) stored.codes(row, stored_column(column0 + c), 1, values + c);
    }
    for (int64_t g = 0; g * width < columns; ++g) {
      const int64_t group = stored.group_of(stored_column(column0 + g * width));
      const int zero = stored.zero_point(row, group);
      for (int64_t c = g * width; c < std::min(columns, (g + 1) * width); ++c) {
        const CodePlace place = place_in_unit(r, c);
        const auto code = static_cast<uint32_t>(static_cast<int>(values[c]) + zero + shift) & 15u;
        words[place.word / 4] |= code << (4 * place.reg + 16 * place.half);
      }
      uint8_t* at = out + kUnitCodeBytes + (g * 8 + r % 8) * 4 + r / 8 * 2;
      std::memcpy(at, part.scale.data() + stored.scale_index(row, group) * 2, 2);
      if (!zeros) continue;
      const uint16_t shifted = format::encode_bf16(static_cast<float>(128 + zero + shift));
      std::memcpy(at + in_unit * 32, &shifted, 2);
    }
  }
  std::memcpy(out, words, sizeof words);
}

void pack_int4(const LayerWeights& weights, uint8_t* out, int threads) {
  const LayerSpec& layer = *weights.spec;
  std::vector<std::vector<int32_t>> orders;
  std::vector<float> factors;
  for (size_t p = 0; p < weights.parts.size(); ++p) {
    orders.push_back(column_order(weights, p));
    factors.push_back(has_whole_groups(weights, p, orders.back()) ? 1 : std::numeric_limits<float>::quiet_NaN());
  }
  pack_rows16(
      weights, out, int4_unit_bytes(layer), threads,
      [&](size_t part, int64_t row0, int64_t unit, uint8_t* at) {
        pack_int4_unit(weights, part, orders[part], row0, unit, at);
      },
      [&](size_t part, int64_t) { return factors[part]; });
  if (!is_sorted_by_group(layer)) return;
  uint8_t* at = out + int4_column_order_at(layer);
  for (const std::vector<int32_t>& order : orders) {
    std::memcpy(at, order.data(), order.size() * 4);
    at += order.size() * 4;
  }
}

void unpack_int4(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  const int64_t unit_bytes = int4_unit_bytes(layer), width = group_columns(layer), in_unit = kUnitColumns / width;
  const int64_t groups = int4_groups_of_row(layer);
  const int64_t columns_a_group = groups == 1 ? layer.k : layer.scheme.weight.grouping.cols;
  const bool zeros = !layer.scheme.weight.symmetric;
  uint8_t* zero = scales + layer.n * groups * 2;
  const int64_t order_at = int4_column_order_at(layer);
  visit_rows16(layer, packed, unit_bytes, [&](size_t part, int64_t, int64_t r, const uint8_t* units) {
    for (int64_t c = 0; c < layer.k; ++c) {
      int32_t column = static_cast<int32_t>(c);
      if (order_at >= 0)
        std::memcpy(&column, packed + order_at + (static_cast<int64_t>(part) * layer.k + c) * 4, sizeof column);
      const CodePlace place = place_in_unit(r, c % kUnitColumns);
      uint32_t word;
      std::memcpy(&word, units + c / kUnitColumns * unit_bytes + place.word, 4);
      codes[column] = static_cast<uint8_t>(word >> (4 * place.reg + 16 * place.half) & 15);
    }
    codes += layer.k;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t column = g * columns_a_group;
      const uint8_t* at = units + column / kUnitColumns * unit_bytes + kUnitCodeBytes +
                          (column % kUnitColumns / width * 8 + r % 8) * 4 + r / 8 * 2;
      std::memcpy(scales, at, 2);
      scales += 2;
      if (!zeros) continue;
      uint16_t shifted;
      std::memcpy(&shifted, at + in_unit * 32, 2);
      *zero++ = static_cast<uint8_t>(format::decode_bf16(shifted) - 128);
    }
  });
}

int64_t bytes_int4(const LayerSpec& layer) {
  const int64_t order_at = int4_column_order_at(layer);
  if (order_at < 0) return rows16_bytes(layer, int4_unit_bytes(layer));
  return order_at + static_cast<int64_t>(part_count(layer)) * layer.k * 4;
}

}  // namespace

int64_t int4_groups_in_unit(const LayerSpec& layer) { return kUnitColumns / group_columns(layer); }

int64_t int4_groups_of_row(const LayerSpec& layer) {
  const Grouping& grouping = layer.scheme.weight.grouping;
  return grouping.kind == Grouping::Kind::group ? ceil_div(layer.k, grouping.cols) : 1;
}

int64_t int4_unit_bytes(const LayerSpec& layer) {
  return kUnitCodeBytes + int4_groups_in_unit(layer) * 32 * (layer.scheme.weight.symmetric ? 1 : 2);
}

int64_t int4_column_order_at(const LayerSpec& layer) {
  return is_sorted_by_group(layer) ? rows16_bytes(layer, int4_unit_bytes(layer)) : -1;
}

const Layout int4_rows16_mma{"int4_rows16_mma", 2, bytes_int4, pack_int4, unpack_int4, Platform::cuda};

}  // namespace gearshift
