#include "kernel/layout/scaled_tiles.h"

#include <cstring>

#include "base/math.h"
#include "kernel/output.h"
#include "kernel/parts.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

constexpr int64_t kTileRows = 128, kTileGroups = 4, kTileBytes = 512;

int64_t place_in_tiles(const ScaledTiles& at, int64_t row, int64_t group) {
  const int64_t r = row % kTileRows;
  return (row / kTileRows * at.group_tiles + group / kTileGroups) * kTileBytes + r % 32 * 16 + r / 32 * 4 +
         group % kTileGroups;
}

bool has_nibbles(const LayerSpec& layer) { return bits(layer.scheme.weight.format) == 4; }

void pack_scaled_tiles(const LayerWeights& weights, uint8_t* out, [[maybe_unused]] int threads) {
  const LayerSpec& layer = *weights.spec;
  const ScaledTiles at = scaled_tiles_of(layer);
  const bool nibbles = has_nibbles(layer);
  std::memset(out, 0, static_cast<size_t>(at.bytes));
  int64_t first = 0;
  for (size_t p = 0; p < weights.parts.size(); ++p) {
    const PartWeights& part = weights.parts[p];
    const StoredWeights stored(weights, p);
    uint8_t* scales = out + at.scales + scale_tiles_of_part(layer, p);
    const auto factor = static_cast<float>(stored.factor());
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t r = 0; r < part.n; ++r) {
      uint8_t* codes = out + (first + r) * at.row_bytes;
      for (int64_t k = 0; k < layer.k; ++k) {
        const auto code = static_cast<uint8_t>(stored.code_bits(r, k));
        if (nibbles)
          codes[k / 2] = static_cast<uint8_t>(codes[k / 2] | code << (k % 2 * 4));
        else
          codes[k] = code;
      }
      for (int64_t g = 0; g < at.groups; ++g)
        scales[place_in_tiles(at, r, g)] = part.scale[static_cast<size_t>(stored.scale_index(r, g))];
      std::memcpy(out + at.factors + (first + r) * 4, &factor, 4);
      const auto bias = static_cast<float>(bias_value(part, r));
      if (at.bias >= 0) std::memcpy(out + at.bias + (first + r) * 4, &bias, 4);
    }
    first += part.n;
  }
}

void unpack_scaled_tiles(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  const ScaledTiles at = scaled_tiles_of(layer);
  const bool nibbles = has_nibbles(layer);
  int64_t row = 0;
  for (size_t part = 0; part < part_count(layer); ++part) {
    const uint8_t* tiles = packed + at.scales + scale_tiles_of_part(layer, part);
    for (int64_t r = 0; r < part_rows(layer, part); ++r, ++row) {
      const uint8_t* from = packed + row * at.row_bytes;
      for (int64_t k = 0; k < layer.k; ++k)
        *codes++ = nibbles ? static_cast<uint8_t>(from[k / 2] >> (k % 2 * 4) & 15) : from[k];
      for (int64_t g = 0; g < at.groups; ++g) *scales++ = tiles[place_in_tiles(at, r, g)];
    }
  }
}

}  // namespace

int64_t scale_tiles_of_part(const LayerSpec& layer, size_t part) {
  const int64_t group = layer.scheme.weight.grouping.cols;
  int64_t rows = 0;
  for (size_t p = 0; p < part; ++p) rows += ceil_div(part_rows(layer, p), kTileRows);
  return rows * ceil_div(ceil_div(layer.k, group), kTileGroups) * kTileBytes;
}

ScaledTiles scaled_tiles_of(const LayerSpec& layer) {
  ScaledTiles at;
  const int64_t width = bits(layer.scheme.weight.format);
  at.row_bytes = ceil_div(layer.k * width, 128) * 16;
  at.columns = at.row_bytes * 8 / width;
  at.group = layer.scheme.weight.grouping.cols;
  at.groups = ceil_div(layer.k, at.group);
  at.group_tiles = ceil_div(at.groups, kTileGroups);
  constexpr int64_t align = 256;
  int64_t end = ceil_div(layer.n * at.row_bytes, align) * align;
  const auto take = [&end](int64_t bytes) { return std::exchange(end, end + ceil_div(bytes, align) * align); };
  at.scales = take(scale_tiles_of_part(layer, part_count(layer)));
  at.factors = take(layer.n * 4);
  if (layer.bias) at.bias = take(layer.n * 4);
  at.bytes = end;
  return at;
}

const Layout scaled_tiles{"scaled_tiles",
                          1,
                          [](const LayerSpec& layer) { return scaled_tiles_of(layer).bytes; },
                          pack_scaled_tiles,
                          unpack_scaled_tiles,
                          Platform::cuda};

}  // namespace gearshift
