// How the outputs of a layer (or of one of its experts) are divided among its parts.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// How many parts a layer's weights have: one where nothing was fused or where experts are one stack.
size_t part_count(const LayerSpec& layer);
// Output rows of one of them.
int64_t part_rows(const LayerSpec& layer, size_t part);

// The output column of row r of a part.
int64_t output_column(const LayerWeights& weights, size_t part, int64_t r);

// Whether the rows of parts [first, last), one part after the other, make neighbouring output columns.
bool side_by_side(const LayerWeights& weights, size_t first, size_t last);

}  // namespace gearshift
