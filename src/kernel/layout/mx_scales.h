// The scales of a row of MX weights as they are stored: an exponent a block of 32 columns.
#pragma once

#include <algorithm>

#include "base/math.h"
#include "gearshift/kernel.h"

namespace gearshift {

inline constexpr int64_t kMxGroup = 32;

inline const uint8_t* mx_scales_of_row(const PartWeights& part, int64_t row, int64_t k) {
  return part.scale.data() + row * ceil_div(k, kMxGroup);
}
inline int largest_mx_scale(const PartWeights& part, int64_t row, int64_t k) {
  const uint8_t* scales = mx_scales_of_row(part, row, k);
  return *std::max_element(scales, scales + ceil_div(k, kMxGroup));
}

}  // namespace gearshift
