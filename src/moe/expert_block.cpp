#include <fmt/format.h>

#include <algorithm>

#include "gearshift/moe.h"
#include "kernel/layout/row_offset.h"
#include "kernel/parts.h"
#include "moe/block_shapes.h"

namespace gearshift {

namespace {

ErrorInfo does_not_fit(const LayerSpec& layer, std::string found, std::string wanted) {
  return {
      ErrorCode::usage, fmt::format("experts of layer {}", layer.name), std::move(found), std::move(wanted), {}, {}};
}

// A part of an expert's row as a linear layer.
LayerSpec part_alone(const LayerSpec& layer, size_t part) {
  LayerSpec alone = layer;
  alone.kind = LayerKind::linear;
  alone.experts = 0;
  alone.stacked = false;
  alone.row_order = RowOrder::concatenated;
  alone.parts.clear();
  alone.modules = {layer.modules[std::min(part, layer.modules.size() - 1)]};
  alone.n = part_rows(layer, part);
  alone.modules.front().n = alone.n;
  return alone;
}

ExpertBlock::Projection projection_of(const PreparedLayer& prepared) {
  ExpertBlock::Projection projection;
  projection.layer = &prepared;
  const LayerSpec& layer = prepared.plan->layer;
  const size_t parts = part_count(layer);
  for (size_t part = 0; part < parts; ++part) projection.parts.push_back(part_alone(layer, part));
  projection.divisible = parts == 1 || layer.row_order == RowOrder::concatenated;
  const auto& activation = layer.scheme.activation;
  projection.splits_tokens = !activation || !activation->dynamic || activation->granularity != Granularity::tensor;
  for (const PlannedRange& range : prepared.plan->decision->ranges) {
    const auto offset = row_offset(*range.kernel->layout, prepared.weights.front(), 0, 0);
    projection.divisible = projection.divisible && offset == 0;
    projection.splits_tokens = projection.splits_tokens && range.kernel->contract.m.min <= 1;
  }
  return projection;
}

Result<void> check_platform(const PreparedLayer& prepared) {
  for (const PlannedRange& range : prepared.plan->decision->ranges) {
    if (range.kernel->platform != Platform::cpu)
      return does_not_fit(prepared.plan->layer, fmt::format("kernel {}", range.kernel->name), "kernels of the CPU");
  }
  return {};
}

}  // namespace

Result<void> check_block_shapes(const PreparedLayer& first, const PreparedLayer& second,
                                const ExpertFunction& function) {
  for (const PreparedLayer* prepared : {&first, &second}) {
    const LayerSpec& layer = prepared->plan->layer;
    if (layer.kind != LayerKind::experts || prepared->weights.empty() || layer.modules.empty())
      return does_not_fit(layer, std::string(name(layer.kind)), "a row of experts");
  }
  const LayerSpec &in = first.plan->layer, &out = second.plan->layer;
  if (first.weights.size() != second.weights.size())
    return does_not_fit(out, fmt::format("{} experts", second.weights.size()),
                        fmt::format("{}, as {} has", first.weights.size(), in.name));
  if (in.n != out.k && in.n / 2 != out.k)
    return does_not_fit(out, fmt::format("K = {}", out.k),
                        fmt::format("{} or, with gate and up, half of it: N of {}", in.n, in.name));
  if (function.kind == ExpertFunction::Kind::unknown)
    return does_not_fit(in, "an activation function that the config does not state, or that is not known",
                        "silu, gelu, gelu_pytorch_tanh or relu2");
  return {};
}

Result<ExpertBlock> ExpertBlock::make(const PreparedLayer& first, const PreparedLayer& second,
                                      const ExpertFunction& function) {
  if (auto checked = check_block_shapes(first, second, function); !checked) return checked.error();
  for (const PreparedLayer* prepared : {&first, &second}) {
    if (auto checked = check_platform(*prepared); !checked) return checked.error();
  }
  ExpertBlock block;
  block.projections_[0] = projection_of(first);
  block.projections_[1] = projection_of(second);
  block.function_ = function;
  block.gated_ = first.plan->layer.n != second.plan->layer.k;
  block.experts_ = static_cast<int64_t>(first.weights.size());
  return block;
}

}  // namespace gearshift
