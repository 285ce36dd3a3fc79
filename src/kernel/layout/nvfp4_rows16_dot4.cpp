#include "kernel/layout/nvfp4_rows16_dot4.h"

#include <algorithm>
#include <cstring>

#include "base/math.h"
#include "kernel/parts.h"

namespace gearshift {

namespace {

// Where a code and a scale of a panel's row r lie, from the start of the panel. Column k; the high nibble if `high`.
struct Place {
  int64_t byte;
  bool high;
};
Place place_of_code(int64_t r, int64_t k) {
  const int64_t in_block = k % kDot4Columns;
  const int64_t in_group = in_block % kDot4Group;
  return {k / kDot4Columns * kDot4BlockBytes + in_block / kDot4Group * kDot4GroupBytes + in_group / 8 * 64 + 4 * r +
              in_group % 4,
          in_group % 8 >= 4};
}
int64_t place_of_scale(int64_t r, int64_t group) {
  const int64_t groups = kDot4Columns / kDot4Group;
  return group / groups * kDot4BlockBytes + kDot4ScaleOffset + group % groups * kDot4Rows + r;
}

int64_t panel_bytes(int64_t k) { return ceil_div(k, kDot4Columns) * kDot4BlockBytes; }

int64_t bytes(const LayerSpec& layer) {
  int64_t panels = 0;
  for (size_t part = 0; part < part_count(layer); ++part) panels += ceil_div(part_rows(layer, part), kDot4Rows);
  return panels * panel_bytes(layer.k);
}

void pack_panel(const PartWeights& part, int64_t r0, int64_t k, uint8_t* out) {
  std::memset(out, 0, static_cast<size_t>(panel_bytes(k)));
  const int64_t groups = k / kDot4Group;
  for (int64_t r = r0; r < std::min(r0 + kDot4Rows, part.n); ++r) {
    const uint8_t* codes = part.weight.data() + r * (k / 2);
    for (int64_t i = 0; i < k; ++i) {
      const Place place = place_of_code(r - r0, i);
      const int code = (codes[i / 2] >> (i % 2 * 4)) & 15;
      out[place.byte] = static_cast<uint8_t>(out[place.byte] | code << (place.high ? 4 : 0));
    }
    for (int64_t g = 0; g < groups; ++g)
      out[place_of_scale(r - r0, g)] = part.scale[static_cast<size_t>(r * groups + g)];
  }
}

void pack(const LayerWeights& weights, uint8_t* out, [[maybe_unused]] int threads) {
  const int64_t k = weights.spec->k;
  for (const PartWeights& part : weights.parts) {
    const int64_t panels = ceil_div(part.n, kDot4Rows);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t panel = 0; panel < panels; ++panel) {
      pack_panel(part, panel * kDot4Rows, k, out + panel * panel_bytes(k));
    }
    out += panels * panel_bytes(k);
  }
}

void unpack(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  const int64_t k = layer.k;
  const int64_t groups = k / kDot4Group;
  for (size_t part = 0; part < part_count(layer); ++part) {
    for (int64_t r = 0; r < part_rows(layer, part); ++r, codes += k, scales += groups) {
      const uint8_t* panel = packed + r / kDot4Rows * panel_bytes(k);
      for (int64_t i = 0; i < k; ++i) {
        const Place place = place_of_code(r % kDot4Rows, i);
        codes[i] = (panel[place.byte] >> (place.high ? 4 : 0)) & 15;
      }
      for (int64_t g = 0; g < groups; ++g) scales[g] = panel[place_of_scale(r % kDot4Rows, g)];
    }
    packed += ceil_div(part_rows(layer, part), kDot4Rows) * panel_bytes(k);
  }
}

}  // namespace

const Layout nvfp4_rows16_dot4{"nvfp4_rows16_dot4", 1, bytes, pack, unpack};

}  // namespace gearshift
