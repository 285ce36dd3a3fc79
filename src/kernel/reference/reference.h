// The judge: y = x * W^T + bias in float64, from the checkpoint's own bytes, slow and obvious on purpose.
//
// It shares no arithmetic with any kernel that it judges. Safe to call from many threads.
#pragma once

#include <span>

#include "gearshift/kernel.h"

namespace gearshift {

extern const Kernel reference_kernel;

// For the rows `rows` of x, and every column: y[rows.size(), N] and, unless nullptr, magnitude[rows.size(), N], the sum
// of |x||w| over k that bounds are made of (without bias). x enters as `use` says: quantized by the checkpoint's
// recipe, or as it is. Decodes each weight row once, so judge many rows in one call. REQUIRES: rows within [0, x.rows),
// x.cols == spec->k.
void reference_rows(const LayerWeights& weights, const ConstMatrix& x, std::span<const int64_t> rows, ActivationUse use,
                    double* y, double* magnitude, int threads);

// Unit round-off of an output type: half the distance from 1 to the next number.
double unit_roundoff(DType dtype);

// The largest |y - wanted| that `kernel` may show for one element of a row whose products have this magnitude:
// (bound_c * sqrt(K) * bound_u + bound_product) * magnitude + u_out * |wanted|, and what the ends of the number ranges
// add: half the smallest subnormal of the output, and the smallest normal fp32 for products that underflow. 0 for a
// zero row without bias.
double error_bound(const Kernel& kernel, int64_t k, double magnitude, double wanted, DType out);

// Whether y (as read back from the output) is within the bound; a wanted value that rounds to infinity in the output
// type wants that infinity. NaN is never within.
bool within_bound(const Kernel& kernel, int64_t k, double magnitude, double wanted, double y, DType out);

}  // namespace gearshift
