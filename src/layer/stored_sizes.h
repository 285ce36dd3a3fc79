// How many scales and how many bytes of zero points a weight [n,k] of a scheme is stored with.
#pragma once

#include "gearshift/layer.h"

namespace gearshift {

// Groups that a row of k columns has: 1 where a scale covers whole rows or more.
int64_t groups_along_k(const Grouping& grouping, int64_t k);
int64_t scale_count(const Grouping& grouping, int64_t n, int64_t k);
// Zero points come packed like the codes, or one a byte or word of `dtype` beside each scale.
int64_t zero_point_bytes(const WeightScheme& weight, int64_t n, int64_t k, DType dtype);

}  // namespace gearshift
