#include "kernel/layout/wide_rows16.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/math.h"
#include "format/e2m3.h"
#include "format/e3m2.h"
#include "format/e4m3.h"
#include "kernel/parts.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

WideCode wide_code(const LayerSpec& layer) {
  const Scheme& scheme = layer.scheme;
  if (scheme.quantized && scheme.weight.format != Format::float_)
    return scheme.weight.format == Format::int8 || scheme.weight.format == Format::uint8 ? WideCode::int8
                                                                                         : WideCode::e4m3;
  if (layer.modules.empty()) return WideCode::bf16;
  for (const StoredTensor& tensor : layer.modules[0].tensors) {
    if (tensor.role == TensorRole::weight && tensor.dtype == DType::f16) return WideCode::f16;
    if (tensor.role == TensorRole::weight && tensor.dtype == DType::f32) return WideCode::f32;
  }
  return WideCode::bf16;
}

// From code bits to bytes of the layout, 256 of them. Integers: two's complement becomes q + 128, offset binary is that
// already. fp6: see the layout.
std::array<uint8_t, 256> code_map(const WeightScheme& weight) {
  const bool offset =
      weight.format == Format::uint8 || weight.storage == Storage::dense_bits || weight.storage == Storage::word_bits;
  std::array<uint8_t, 256> map;
  for (size_t i = 0; i < map.size(); ++i) {
    map[i] = static_cast<uint8_t>(i);
    if (weight.format == Format::int8 && !offset) map[i] ^= 0x80;
    if (weight.format == Format::e2m3) map[i] = format::encode_e4m3(format::e2m3_table[i % 64]);
    if (weight.format == Format::e3m2) map[i] = format::encode_e4m3(format::e3m2_table[i % 64]);
  }
  return map;
}

int64_t scale_rows_of(const Scheme& scheme) {
  if (!scheme.quantized) return 0;
  const Grouping& grouping = scheme.weight.grouping;
  const bool shared = grouping.kind == Grouping::Kind::tensor ||
                      (grouping.kind == Grouping::Kind::block && grouping.rows % kWideRows == 0);
  return shared ? 1 : kWideRows;
}

// A float of row n, as stored.
void copy_float(const PartWeights& part, const Scheme& scheme, const WideRows16& at, int64_t n, int64_t column,
                uint8_t* to) {
  const bool transposed = scheme.weight.storage == Storage::dense_transposed;
  const int64_t index = transposed ? column * part.n + n : n * at.k + column;
  std::memcpy(to, part.weight.data() + index * at.code_bytes(), static_cast<size_t>(at.code_bytes()));
}

// `row`: K bytes of scratch.
void pack_wide_panel(const LayerWeights& weights, size_t p, const WideRows16& at, const std::array<uint8_t, 256>& map,
                     int64_t r0, uint8_t* out, uint8_t* row) {
  const PartWeights& part = weights.parts[p];
  const Scheme& scheme = weights.spec->scheme;
  const StoredWeights stored(weights, p);
  std::memset(out, 0, static_cast<size_t>(at.panel_bytes()));
  const auto scale_bytes = static_cast<size_t>(at.scale_bytes);
  for (int64_t r = 0; r < std::min(kWideRows, part.n - r0); ++r) {
    if (at.float_codes()) {
      for (int64_t column = 0; column < at.k; ++column)
        copy_float(part, scheme, at, r0 + r, column, out + at.place(r, column));
      continue;
    }
    stored.code_row(r0 + r, row);
    int32_t sum = 0;
    for (int64_t column = 0; column < at.k; ++column) {
      const uint8_t code = map[row[column]];
      out[at.place(r, column)] = code;
      sum += code;
    }
    if (at.code == WideCode::int8) {
      sum -= static_cast<int32_t>(128 * at.k);
      std::memcpy(out + at.sums_offset() + 4 * r, &sum, sizeof sum);
    }
    if (r >= at.scale_rows) continue;
    for (int64_t g = 0; g < at.groups; ++g) {
      const auto from = static_cast<size_t>(stored.scale_index(r0 + r, g));
      std::memcpy(out + at.scales_offset() + (g * at.scale_rows + r) * at.scale_bytes,
                  part.scale.data() + from * scale_bytes, scale_bytes);
    }
  }
}

int64_t wide_bytes(const LayerSpec& layer) {
  const WideRows16 at(layer);
  int64_t panels = 0;
  for (size_t part = 0; part < part_count(layer); ++part) panels += WideRows16::panels(part_rows(layer, part));
  return panels * at.panel_bytes();
}

void pack_wide(const LayerWeights& weights, uint8_t* out, [[maybe_unused]] int threads) {
  const WideRows16 at(*weights.spec);
  const std::array<uint8_t, 256> map = code_map(weights.spec->scheme.weight);
  for (size_t p = 0; p < weights.parts.size(); ++p) {
    const int64_t panels = WideRows16::panels(weights.parts[p].n);
#pragma omp parallel num_threads(threads)
    {
      std::vector<uint8_t> row(static_cast<size_t>(at.k));
#pragma omp for schedule(static)
      for (int64_t panel = 0; panel < panels; ++panel)
        pack_wide_panel(weights, p, at, map, panel * kWideRows, out + panel * at.panel_bytes(), row.data());
    }
    out += panels * at.panel_bytes();
  }
}

// As many bytes a code as the layout has.
void unpack_wide(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  const WideRows16 at(layer);
  std::array<uint8_t, 256> bits_of{};
  const std::array<uint8_t, 256> map = code_map(layer.scheme.weight);
  for (size_t bits = map.size(); bits-- > 0;) bits_of[map[bits]] = static_cast<uint8_t>(bits);
  const bool per_row = layer.scheme.weight.grouping.kind != Grouping::Kind::tensor;
  const int64_t block =
      layer.scheme.weight.grouping.kind == Grouping::Kind::block ? layer.scheme.weight.grouping.rows : 1;
  for (size_t part = 0; part < part_count(layer); ++part) {
    const int64_t n = part_rows(layer, part);
    for (int64_t row = 0; row < n; ++row) {
      const uint8_t* panel = packed + row / kWideRows * at.panel_bytes();
      const int64_t r = row % kWideRows;
      for (int64_t column = 0; column < at.k; ++column) {
        for (int64_t byte = 0; byte < at.code_bytes(); ++byte) {
          const uint8_t stored = panel[at.place(r, column) + byte];
          *codes++ = at.float_codes() ? stored : bits_of[stored];
        }
      }
      if (at.scale_rows == 0 || row % block != 0 || (!per_row && row != 0)) continue;
      for (int64_t g = 0; g < at.groups; ++g, scales += at.scale_bytes) {
        std::memcpy(scales, panel + at.scales_offset() + (g * at.scale_rows + r % at.scale_rows) * at.scale_bytes,
                    static_cast<size_t>(at.scale_bytes));
      }
    }
    packed += WideRows16::panels(n) * at.panel_bytes();
  }
}

}  // namespace

WideRows16::WideRows16(const LayerSpec& layer)
    : code(wide_code(layer)),
      k(layer.k),
      columns(ceil_div(layer.k, kWideChunk) * kWideChunk),
      groups(1),
      group(columns),
      scale_rows(scale_rows_of(layer.scheme)),
      scale_bytes(bits(layer.scheme.weight.scale) / 8) {
  const Grouping& grouping = layer.scheme.weight.grouping;
  if (!layer.scheme.quantized || (grouping.kind != Grouping::Kind::group && grouping.kind != Grouping::Kind::block))
    return;
  group = grouping.cols;
  groups = ceil_div(k, group);
}

int64_t WideRows16::place(int64_t r, int64_t column) const {
  if (code == WideCode::int8) return column / 4 * 64 + r * 4 + column % 4;
  if (code == WideCode::bf16) return column / 2 * 64 + r * 4 + column % 2 * 2;
  return (column * kWideRows + r) * code_bytes();
}

const Layout wide_rows16{"wide_rows16", 1, wide_bytes, pack_wide, unpack_wide};

}  // namespace gearshift
