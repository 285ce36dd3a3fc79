#include "kernel/layout/wide_rows16.h"

#include <algorithm>
#include <cstring>

#include "base/math.h"
#include "kernel/parts.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

constexpr uint32_t kInt8Flip = 0x80;  // two's complement to q + 128

WideCode wide_code(const Scheme& scheme) {
  if (!scheme.quantized || scheme.weight.format == Format::float_) return WideCode::bf16;
  return scheme.weight.format == Format::e4m3 ? WideCode::e4m3 : WideCode::int8;
}

int64_t scale_rows_of(const Scheme& scheme) {
  if (!scheme.quantized) return 0;
  const Grouping& grouping = scheme.weight.grouping;
  const bool shared = grouping.kind == Grouping::Kind::tensor ||
                      (grouping.kind == Grouping::Kind::block && grouping.rows % kWideRows == 0);
  return shared ? 1 : kWideRows;
}

// Bits of the float at row n, column k.
uint16_t float_bits(const PartWeights& part, const Scheme& scheme, int64_t k, int64_t n, int64_t column) {
  const bool transposed = scheme.weight.storage == Storage::dense_transposed;
  uint16_t bits;
  std::memcpy(&bits, part.weight.data() + 2 * (transposed ? column * part.n + n : n * k + column), sizeof bits);
  return bits;
}

void pack_wide_panel(const LayerWeights& weights, size_t p, const WideRows16& at, int64_t r0, uint8_t* out) {
  const PartWeights& part = weights.parts[p];
  const Scheme& scheme = weights.spec->scheme;
  const StoredWeights stored(weights, p);
  std::memset(out, 0, static_cast<size_t>(at.panel_bytes()));
  const auto scale_bytes = static_cast<size_t>(at.scale_bytes);
  for (int64_t r = 0; r < std::min(kWideRows, part.n - r0); ++r) {
    int32_t sum = 0;
    for (int64_t column = 0; column < at.k; ++column) {
      uint8_t* to = out + at.place(r, column);
      if (at.code == WideCode::bf16) {
        const uint16_t bits = float_bits(part, scheme, at.k, r0 + r, column);
        std::memcpy(to, &bits, sizeof bits);
        continue;
      }
      const uint32_t code = stored.code_bits(r0 + r, column);
      *to = static_cast<uint8_t>(at.code == WideCode::int8 ? code ^ kInt8Flip : code);
      sum += static_cast<int8_t>(code);
    }
    if (at.code == WideCode::int8) std::memcpy(out + at.sums_offset() + 4 * r, &sum, sizeof sum);
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
  for (size_t p = 0; p < weights.parts.size(); ++p) {
    const int64_t panels = WideRows16::panels(weights.parts[p].n);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t panel = 0; panel < panels; ++panel) {
      pack_wide_panel(weights, p, at, panel * kWideRows, out + panel * at.panel_bytes());
    }
    out += panels * at.panel_bytes();
  }
}

// Two bytes a code for bf16, else one.
void unpack_wide(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  const WideRows16 at(layer);
  const uint8_t flip = at.code == WideCode::int8 ? kInt8Flip : 0;
  const bool per_row = layer.scheme.weight.grouping.kind != Grouping::Kind::tensor;
  const int64_t block =
      layer.scheme.weight.grouping.kind == Grouping::Kind::block ? layer.scheme.weight.grouping.rows : 1;
  for (size_t part = 0; part < part_count(layer); ++part) {
    const int64_t n = part_rows(layer, part);
    for (int64_t row = 0; row < n; ++row) {
      const uint8_t* panel = packed + row / kWideRows * at.panel_bytes();
      const int64_t r = row % kWideRows;
      for (int64_t column = 0; column < at.k; ++column) {
        for (int64_t byte = 0; byte < at.code_bytes(); ++byte)
          *codes++ = static_cast<uint8_t>(panel[at.place(r, column) + byte] ^ flip);
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
    : code(wide_code(layer.scheme)),
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
  switch (code) {
    case WideCode::int8:
      return column / 4 * 64 + r * 4 + column % 4;
    case WideCode::e4m3:
      return column * kWideRows + r;
    case WideCode::bf16:
      return column / 2 * 64 + r * 4 + column % 2 * 2;
  }
  return 0;
}

const Layout wide_rows16{"wide_rows16", 1, wide_bytes, pack_wide, unpack_wide};

}  // namespace gearshift
