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

namespace {

// Experts that got at least one token, and the most that one got.
std::pair<int64_t, int64_t> load_of(const RoutedTokens& routed, int64_t experts) {
  std::vector<int64_t> rows(static_cast<size_t>(experts));
  for (int64_t i = 0; i < routed.tokens * routed.top_k; ++i) ++rows[static_cast<size_t>(routed.experts[i])];
  const auto active = std::count_if(rows.begin(), rows.end(), [](int64_t r) { return r > 0; });
  return {active, rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end())};
}

}  // namespace

Measurement block_measurement(const ExpertBlock& block, const std::string& name, const RoutedTokens& routed,
                              DType dtype) {
  const LayerPlan &in = *block.first().plan, &out = *block.second().plan;
  const auto [active, most] = load_of(routed, block.experts());
  const Kernel& kernel = *range_for(*in.decision, std::max<int64_t>(1, most)).kernel;
  const Kernel& last = *range_for(*out.decision, std::max<int64_t>(1, most)).kernel;
  Measurement row = measurement_of(in.layer, kernel, dtype, routed.tokens);
  row.layer = name;
  row.n = out.layer.n;
  if (&last != &kernel) row.kernel += fmt::format(" + {}", last.name);
  row.tactic = fmt::format("grouped, {} of {} experts, top {}", active, block.experts(), routed.top_k);
  row.weight_bytes = (in.layer.weight_bytes + out.layer.weight_bytes) / static_cast<uint64_t>(block.experts()) *
                     static_cast<uint64_t>(active);
  return row;
}

void set_block_timing(Measurement& row, const ExpertBlock& block, const RoutedTokens& routed, const Timing& timing,
                      DType dtype) {
  row.timing = timing;
  if (timing.median_us <= 0) return;
  const LayerSpec &in = block.first().plan->layer, &out = block.second().plan->layer;
  const auto rows = static_cast<double>(routed.tokens * routed.top_k);
  const auto tokens = static_cast<double>(routed.tokens);
  const double inner = static_cast<double>(in.n) + static_cast<double>(out.k) + static_cast<double>(out.n);
  const double moved = static_cast<double>(row.weight_bytes) +
                       (tokens * static_cast<double>(in.k + out.n) + rows * inner) * (bits(dtype) / 8);
  row.gbytes_per_s = moved / (timing.median_us * 1e3);
  row.tflops = 2 * rows *
               (static_cast<double>(in.n) * static_cast<double>(in.k) +
                static_cast<double>(out.n) * static_cast<double>(out.k)) /
               (timing.median_us * 1e6);
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
