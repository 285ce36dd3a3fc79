// The row that `run` and `verify` show for one kernel on one layer at one batch size.
#pragma once

#include "gearshift/measure.h"

namespace gearshift {

Measurement measurement_of(const LayerSpec& layer, const Kernel& kernel, DType dtype, int64_t m);

// Adds the time, and the bandwidth and arithmetic rate that follow from it, of `experts` runs of the layer's shape.
void set_timing(Measurement& row, const Timing& timing, DType dtype, int64_t experts);

// The row of several experts: the worst of each error, ok only if all are.
void merge(Comparison& into, const Comparison& other);

}  // namespace gearshift
