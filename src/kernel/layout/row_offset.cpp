#include "kernel/layout/row_offset.h"

#include "kernel/layout/nibbles_rows16.h"
#include "kernel/layout/wide_rows16.h"

namespace gearshift {

std::optional<int64_t> row_offset(const Layout& layout, const LayerWeights& weights, size_t part, int64_t row) {
  int64_t panel_bytes = 0;
  if (&layout == &nibbles_rows16) {
    const NibblesRows16 at(*weights.spec);
    if (at.ordered) return std::nullopt;
    panel_bytes = at.panel_bytes();
  } else if (&layout == &wide_rows16) {
    panel_bytes = WideRows16(*weights.spec).panel_bytes();
  } else {
    return std::nullopt;
  }
  int64_t panels = row / kRowsTogether;
  for (size_t p = 0; p < part; ++p) panels += (weights.parts[p].n + kRowsTogether - 1) / kRowsTogether;
  return panels * panel_bytes;
}

}  // namespace gearshift
