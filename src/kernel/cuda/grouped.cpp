#include "kernel/cuda/grouped.h"

#include <algorithm>

#include "kernel/cuda/operand.h"
#include "kernel/cuda/stream_launch.h"
#include "kernel/layout/int4_rows16_mma.h"
#include "kernel/layout/rows16.h"
#include "kernel/reference/activation.h"

namespace gearshift::cuda {

namespace {

// Those of the streaming kernels: the others have no main loop that takes tiles.
bool streams(const Kernel& kernel) {
  constexpr std::string_view ending = "_stream";
  return kernel.platform == Platform::cuda && kernel.name.size() > ending.size() &&
         kernel.name.substr(kernel.name.size() - ending.size()) == ending;
}

StreamTactics tactics_of(const Layout& layout) {
  if (streams_rows(layout)) return stream_row_group_tactics;
  return stream_group_tactics;
}

}  // namespace

std::string refuses_group(const Kernel& kernel, std::span<const LayerWeights> experts) {
  if (!streams(kernel)) return "kernel " + std::string(kernel.name) + " has no form for many experts at once";
  const PartWeights& first = experts.front().parts.front();
  const bool versions = activation_versions(*experts.front().spec, kernel.activation) > 1;
  for (const LayerWeights& expert : experts) {
    for (const PartWeights& part : expert.parts) {
      if (!part.group_index.empty()) return "columns in an order of their own for each expert";
      if (!part.pre_scale.empty()) return "activations scaled column by column for each expert";
      if (versions && !same_activations(first, part)) return "activation scales that differ from expert to expert";
      if (part.scale_dtype != first.scale_dtype) return "scales of several types";
    }
  }
  return "";
}

int64_t group_tile_tokens(double rows) { return rows <= 6 ? 8 : 16; }

int64_t grouped_workspace(const Kernel& kernel, const LayerSpec& layer, int64_t rows) {
  return operand_bytes(stream_needs(layer, kernel.activation, DType::bf16), rows);
}

std::vector<std::string_view> grouped_tactics(const Kernel& kernel) {
  return stream_tactic_names(tactics_of(*kernel.layout));
}

#ifdef GEARSHIFT_CUDA_TARGETS

bool run_grouped(const GroupedCall& args) {
  const Layout& layout = *args.kernel->layout;
  const LayerWeights& weights = args.experts.front();
  const LayerSpec& layer = *weights.spec;
  const OperandNeeds needs = stream_needs(layer, args.kernel->activation, args.x.dtype);
  RunArgs run;
  run.weights = &weights;
  run.x = args.x;
  run.stream = args.stream;
  Operand x;
  if (!make_operand(run, needs, 0, 0, args.x.rows, nullptr, args.workspace.data(), x)) return false;

  StreamFormat format = stream_format(layer, layout);
  format.half = needs.element == DType::f16;
  PartRun rows;
  for (const PartWeights& part : weights.parts) rows.add(part);
  StreamCall call;
  point_at_weights(weights, args.packed, layout, format, rows, call);
  point_at_operand(x, layer.k, call);
  call.y = static_cast<uint16_t*>(args.y.data);
  call.y_stride = args.y.stride;
  call.m = static_cast<int>(args.tile_tokens);
  call.half_out = args.y.dtype == DType::f16;
  call.group = args.group;
  // The quantizer is a launch between the one that made the tiles and this one.
  call.group.ready = args.group.ready || x.data != args.x.data;

  const StreamTactics tactics = tactics_of(layout);
  const StreamDevice device = stream_device();
  const auto unit_bytes = static_cast<int>(format.unit_bytes);
  const int64_t slabs = std::max<int64_t>(1, call.rows / kUnitRows);
  int tactic = find_stream_tactic(tactics, args.tactic).tactic;
  if (args.tactic.empty()) {
    tactic = choose_stream_group_tactic(tactics, args.busy_tiles, slabs, call.units_along_k, call.m, unit_bytes,
                                        format.rare(), device);
  }
  if (tactic < 0 ||
      !stream_fits(tactics[static_cast<size_t>(tactic)], unit_bytes, slabs, call.m, device, format.rare()))
    return false;
  return launch_stream(call, format, tactic, args.stream);
}

#else

bool run_grouped(const GroupedCall&) { return false; }
bool sort_tokens(const SortTokens&, void*) { return false; }
bool apply_function(const ApplyFunction&, void*) { return false; }
bool combine_rows(const CombineRows&, void*) { return false; }

#endif

}  // namespace gearshift::cuda
