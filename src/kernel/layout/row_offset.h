// Where a range of output rows begins in packed bytes, for layouts whose rows can be run by themselves.
#pragma once

#include <optional>

#include "gearshift/kernel.h"

namespace gearshift {

// Rows that stay together in such layouts.
inline constexpr int64_t kRowsTogether = 16;

// Byte at which row `row` (a multiple of kRowsTogether) of part `part` begins, where those rows, as a layer of one part
// with the same scheme and K, would be packed as the bytes from there on; nullopt for every other layout and for column
// orders.
std::optional<int64_t> row_offset(const Layout& layout, const LayerWeights& weights, size_t part, int64_t row);

}  // namespace gearshift
