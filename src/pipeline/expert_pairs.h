// Which rows of a plan are the two projections of one expert block.
#pragma once

#include "gearshift/layer.h"

namespace gearshift {

struct ExpertPair {
  size_t first = 0, second = 0;  // rows: gate and up, or up alone; down
  std::string name;              // of the block: "model.layers.0.mlp.experts"
};
// In the order of the first rows. A layer whose gate and up did not become one row, or whose experts are rows of their
// own, has none.
std::vector<ExpertPair> expert_pairs(const std::vector<LayerSpec>& rows);

}  // namespace gearshift
