#include "pipeline/measurement.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/arithmetic.h"

namespace gearshift {

Measurement measurement_of(const LayerSpec& layer, const Kernel& kernel, DType dtype, int64_t m) {
  Measurement row;
  row.layer = layer.name;
  row.family = name(layer.family);
  row.scheme = scheme_name(layer.scheme);
  row.arithmetic = fmt::format("{} x {}, {}", name(layer.scheme.weight.format), activation_word(kernel, layer, dtype),
                               kernel.accumulator);
  row.n = layer.n;
  row.k = layer.k;
  row.m = m;
  row.kernel = kernel.name;
  row.backend = kernel.backend;
  row.weight_bytes = layer.weight_bytes;
  return row;
}

void set_timing(Measurement& row, const Timing& timing, DType dtype, int64_t experts) {
  row.timing = timing;
  if (timing.median_us <= 0) return;
  const double calls = static_cast<double>(experts), m = static_cast<double>(row.m);
  const double n = static_cast<double>(row.n), k = static_cast<double>(row.k);
  const double moved = static_cast<double>(row.weight_bytes) + calls * m * (n + k) * (bits(dtype) / 8);
  row.gbytes_per_s = moved / (timing.median_us * 1e3);
  row.tflops = calls * 2 * m * n * k / (timing.median_us * 1e6);
}

void merge(Comparison& into, const Comparison& other) {
  if (into.ok && !other.ok) into.failure = other.failure;
  into.ok = into.ok && other.ok;
  into.relative_error = std::max(into.relative_error, other.relative_error);
  into.tolerance = std::max(into.tolerance, other.tolerance);
  into.worst_row = std::max(into.worst_row, other.worst_row);
  into.worst_column = std::max(into.worst_column, other.worst_column);
  into.infinite += other.infinite;
  if (other.divergence) into.divergence = std::max(into.divergence.value_or(0), *other.divergence);
}

}  // namespace gearshift
