#include "kernel/layout/int4_rows16_mma.h"

#include <algorithm>

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

int64_t groups_of_row(const LayerSpec& layer) {
  const Grouping& grouping = layer.scheme.weight.grouping;
  return grouping.kind == Grouping::Kind::group ? ceil_div(layer.k, grouping.cols) : 1;
}

void pack_int4_unit(const LayerWeights& weights, size_t p, int64_t row0, int64_t unit, uint8_t* out) {
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
    stored.codes(row, column0, columns, values);
    for (int64_t g = 0; g * width < columns; ++g) {
      const int64_t group = stored.group_of(column0 + g * width);
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
  pack_rows16(
      weights, out, int4_unit_bytes(*weights.spec), threads,
      [&](size_t part, int64_t row0, int64_t unit, uint8_t* at) { pack_int4_unit(weights, part, row0, unit, at); },
      [](size_t, int64_t) { return 1.0f; });
}

void unpack_int4(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  const int64_t unit_bytes = int4_unit_bytes(layer), width = group_columns(layer), in_unit = kUnitColumns / width;
  const int64_t groups = groups_of_row(layer);
  const int64_t columns_a_group = groups == 1 ? layer.k : layer.scheme.weight.grouping.cols;
  const bool zeros = !layer.scheme.weight.symmetric;
  uint8_t* zero = scales + layer.n * groups * 2;
  visit_rows16(layer, packed, unit_bytes, [&](size_t, int64_t, int64_t r, const uint8_t* units) {
    for (int64_t c = 0; c < layer.k; ++c) {
      const CodePlace place = place_in_unit(r, c % kUnitColumns);
      uint32_t word;
      std::memcpy(&word, units + c / kUnitColumns * unit_bytes + place.word, 4);
      *codes++ = static_cast<uint8_t>(word >> (4 * place.reg + 16 * place.half) & 15);
    }
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

int64_t bytes_int4(const LayerSpec& layer) { return rows16_bytes(layer, int4_unit_bytes(layer)); }

}  // namespace

int64_t int4_groups_in_unit(const LayerSpec& layer) { return kUnitColumns / group_columns(layer); }

int64_t int4_unit_bytes(const LayerSpec& layer) {
  return kUnitCodeBytes + int4_groups_in_unit(layer) * 32 * (layer.scheme.weight.symmetric ? 1 : 2);
}

const Layout int4_rows16_mma{"int4_rows16_mma", 1, bytes_int4, pack_int4, unpack_int4, Platform::cuda};

}  // namespace gearshift
