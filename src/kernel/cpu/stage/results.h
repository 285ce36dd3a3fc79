// Sums of one panel group become outputs: float64 factor and bias, one rounding.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// y[row, column + r] = sums[r] * factor + bias[r] for r < n.
void store_results(Isa isa, const Matrix& y, int64_t row, int64_t column, const float* sums, int64_t n, double factor,
                   const double* bias);

}  // namespace gearshift
