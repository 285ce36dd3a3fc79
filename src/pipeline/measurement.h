// The row that `run` and `verify` show for one kernel on one layer at one batch size.
#pragma once

#include "gearshift/measure.h"
#include "gearshift/moe.h"

namespace gearshift {

Measurement measurement_of(const LayerSpec& layer, const Kernel& kernel, DType dtype, int64_t m);

// Adds the time, and the bandwidth and arithmetic rate that follow from it, of `experts` runs of the layer's shape.
void set_timing(Measurement& row, const Timing& timing, DType dtype, int64_t experts);

// The row of an expert block on a router's choice: n, k and the kernel are those of the first projection and of the
// second, bytes those of the experts that got a token.
Measurement block_measurement(const ExpertBlock& block, const std::string& name, const RoutedTokens& routed,
                              DType dtype);
void set_block_timing(Measurement& row, const ExpertBlock& block, const RoutedTokens& routed, const Timing& timing,
                      DType dtype);

// The row of several experts: the worst of each error, ok only if all are.
void merge(Comparison& into, const Comparison& other);

}  // namespace gearshift
