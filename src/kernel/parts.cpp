#include "kernel/parts.h"

namespace gearshift {

size_t part_count(const LayerSpec& layer) {
  const bool experts = layer.kind == LayerKind::experts;
  if (layer.stacked || layer.modules.empty() || (experts && layer.experts <= 0)) return 1;
  return experts ? layer.modules.size() / static_cast<size_t>(layer.experts) : layer.modules.size();
}

int64_t part_rows(const LayerSpec& layer, size_t part) {
  return part_count(layer) == 1 ? layer.n : layer.modules[part].n;
}

int64_t output_column(const LayerWeights& weights, size_t part, int64_t r) {
  const size_t parts = weights.parts.size();
  if (parts > 1 && weights.spec->row_order == RowOrder::interleaved) {
    return r * static_cast<int64_t>(parts) + static_cast<int64_t>(part);
  }
  int64_t first = 0;
  for (size_t i = 0; i < part; ++i) first += weights.parts[i].n;
  return first + r;
}

bool side_by_side(const LayerWeights& weights, size_t first, size_t last) {
  int64_t column = output_column(weights, first, 0);
  for (size_t part = first; part < last; ++part) {
    const int64_t n = weights.parts[part].n;
    if (output_column(weights, part, 0) != column || output_column(weights, part, n - 1) != column + n - 1)
      return false;
    column += n;
  }
  return true;
}

}  // namespace gearshift
