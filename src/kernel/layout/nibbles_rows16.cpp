#include "kernel/layout/nibbles_rows16.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/math.h"
#include "kernel/parts.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

// Byte of a panel that holds row r of column k, and whether in its high nibble.
struct NibblePlace {
  int64_t byte;
  bool high;
};
NibblePlace place_of_nibble(int64_t r, int64_t k) {
  const int64_t in_chunk = k % kChunkColumns;
  return {k / kChunkColumns * kChunkBytes + in_chunk / 8 * 64 + 4 * r + in_chunk % 4, in_chunk % 8 >= 4};
}

// Two's complement to offset binary: flips the top bit. Bit streams of compressed-tensors are offset already.
uint32_t code_flip(const WeightScheme& weight) {
  const bool stream = weight.storage == Storage::dense_bits || weight.storage == Storage::word_bits;
  return weight.format == Format::int4 && !stream ? 8 : 0;
}

bool has_zeros(const WeightScheme& weight) { return !weight.symmetric && weight.format != Format::e2m1; }

// Packed columns in the order of their groups; false where the groups are not full.
bool sort_columns(const StoredWeights& stored, const NibblesRows16& at, int32_t* order) {
  std::fill(order, order + at.columns, -1);
  // Counting sort without scratch: the next free place of a group is found by its first empty slot.
  for (int64_t group = 0, first = 0; group < at.groups; ++group, first += at.group) {
    int64_t filled = first;
    const int64_t end = std::min(first + at.group, at.k);
    for (int64_t k = 0; k < at.k; ++k) {
      if (stored.group_of(k) != group) continue;
      if (filled == end) return false;
      order[filled++] = static_cast<int32_t>(k);
    }
    if (filled != end) return false;
  }
  return true;
}

// `scratch`: 2 * columns bytes.
void pack_nibbles_panel(const StoredWeights& stored, const PartWeights& part, const WeightScheme& weight,
                        const NibblesRows16& at, const int32_t* order, int64_t r0, uint8_t* out, uint8_t* scratch) {
  std::memset(out, 0, static_cast<size_t>(at.panel_bytes()));
  const auto flip = static_cast<uint8_t>(code_flip(weight));
  const auto scale_bytes = static_cast<size_t>(at.scale_bytes);
  uint8_t* codes = scratch;
  uint8_t* as_stored = scratch + at.columns;
  std::memset(scratch, 0, static_cast<size_t>(2 * at.columns));
  for (int64_t r = 0; r < std::min(kPanelRows, stored.n() - r0); ++r) {
    const int64_t row = r0 + r;
    stored.code_row(row, as_stored);
    for (int64_t i = 0; i < at.k; ++i) codes[i] = as_stored[order == nullptr ? i : order[i]] ^ flip;
    // Eight columns: the first four in low nibbles, the next in high ones.
    for (int64_t i = 0; i < at.columns; i += 8) {
      uint32_t low, high;
      std::memcpy(&low, codes + i, 4);
      std::memcpy(&high, codes + i + 4, 4);
      const uint32_t both = low | high << 4;
      std::memcpy(out + i * 8 + 4 * r, &both, 4);
    }
    for (int64_t g = 0; g < at.groups; ++g) {
      const int64_t to = g * kPanelRows + r;
      const auto from = static_cast<size_t>(stored.scale_index(row, g));
      std::memcpy(out + at.scales_offset() + to * at.scale_bytes, part.scale.data() + from * scale_bytes, scale_bytes);
      if (at.zeros) out[at.zeros_offset() + to] = static_cast<uint8_t>(stored.zero_point(row, g));
    }
  }
}

int64_t nibbles_bytes(const LayerSpec& layer) {
  const NibblesRows16 at(layer);
  int64_t bytes = 0;
  for (size_t part = 0; part < part_count(layer); ++part) {
    bytes += at.order_bytes() + NibblesRows16::panels(part_rows(layer, part)) * at.panel_bytes();
  }
  return bytes;
}

void pack_nibbles(const LayerWeights& weights, uint8_t* out, [[maybe_unused]] int threads) {
  const NibblesRows16 at(*weights.spec);
  for (size_t p = 0; p < weights.parts.size(); ++p) {
    const StoredWeights stored(weights, p);
    const int64_t panels = NibblesRows16::panels(stored.n());
    const int32_t* order = nullptr;
    bool even = true;
    if (at.ordered) {
      std::memset(out, 0, static_cast<size_t>(at.order_bytes()));
      auto* sorted = reinterpret_cast<int32_t*>(out);
      even = sort_columns(stored, at, sorted);
      if (!even) sorted[0] = kUnevenOrder;
      order = sorted;
      out += at.order_bytes();
    }
#pragma omp parallel num_threads(threads)
    {
      std::vector<uint8_t> scratch(static_cast<size_t>(2 * at.columns));
#pragma omp for schedule(static)
      for (int64_t panel = 0; panel < panels; ++panel) {
        uint8_t* to = out + panel * at.panel_bytes();
        if (even) {
          pack_nibbles_panel(stored, weights.parts[p], weights.spec->scheme.weight, at, order, panel * kPanelRows, to,
                             scratch.data());
        } else {
          std::memset(to, 0, static_cast<size_t>(at.panel_bytes()));
        }
      }
    }
    out += panels * at.panel_bytes();
  }
}

void unpack_nibbles(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  const NibblesRows16 at(layer);
  const uint32_t flip = code_flip(layer.scheme.weight);
  for (size_t part = 0; part < part_count(layer); ++part) {
    const auto* order = at.ordered ? reinterpret_cast<const int32_t*>(packed) : nullptr;
    packed += at.order_bytes();
    const int64_t n = part_rows(layer, part);
    for (int64_t row = 0; row < n; ++row, codes += at.k, scales += at.groups * at.scale_bytes) {
      const uint8_t* panel = packed + row / kPanelRows * at.panel_bytes();
      const int64_t r = row % kPanelRows;
      for (int64_t i = 0; i < at.k; ++i) {
        const NibblePlace place = place_of_nibble(r, i);
        const uint32_t code = (panel[place.byte] >> (place.high ? 4 : 0)) & 15u;
        codes[order == nullptr ? i : order[i]] = static_cast<uint8_t>(code ^ flip);
      }
      for (int64_t g = 0; g < at.groups; ++g) {
        std::memcpy(scales + g * at.scale_bytes, panel + at.scales_offset() + (g * kPanelRows + r) * at.scale_bytes,
                    static_cast<size_t>(at.scale_bytes));
      }
    }
    packed += NibblesRows16::panels(n) * at.panel_bytes();
  }
}

}  // namespace

NibblesRows16::NibblesRows16(const LayerSpec& layer)
    : k(layer.k),
      columns(ceil_div(layer.k, kChunkColumns) * kChunkColumns),
      grouped(layer.scheme.weight.grouping.kind == Grouping::Kind::group),
      group(grouped ? layer.scheme.weight.grouping.cols : columns),
      groups(grouped ? ceil_div(layer.k, group) : 1),
      scale_bytes(static_cast<int64_t>(bits(layer.scheme.weight.scale)) / 8),
      zeros(has_zeros(layer.scheme.weight)),
      ordered(layer.scheme.weight.act_order) {}

int64_t NibblesRows16::panel_bytes() const {
  const int64_t bytes = zeros_offset() + (zeros ? groups * kPanelRows : 0);
  return ceil_div(bytes, 64) * 64;
}

const Layout nibbles_rows16{"nibbles_rows16", 1, nibbles_bytes, pack_nibbles, unpack_nibbles};

}  // namespace gearshift
