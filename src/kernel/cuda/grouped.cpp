#include "kernel/cuda/grouped.h"

#include <algorithm>

#include "device/cuda.h"
#include "device/stacked_map.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/prefill_tactics.h"
#include "kernel/cuda/stage/prefill_group_call.h"
#include "kernel/cuda/stream_launch.h"
#include "kernel/layout/int4_rows16_mma.h"
#include "kernel/layout/mxfp4_rows16_mma.h"
#include "kernel/layout/nvfp4_rows16_mma.h"
#include "kernel/layout/rows16.h"
#include "kernel/parts.h"
#include "kernel/reference/activation.h"

namespace gearshift::cuda {

namespace {

bool ends_with(std::string_view word, std::string_view ending) {
  return word.size() > ending.size() && word.substr(word.size() - ending.size()) == ending;
}
bool is_stream_group(const Kernel& kernel) {
  return kernel.platform == Platform::cuda && ends_with(kernel.name, "_stream");
}

StreamTactics stream_tactics_of(const Layout& layout) {
  if (streams_rows(layout)) return stream_row_group_tactics;
  return stream_group_tactics;
}

// Of those that prefill_group.cuh is built for.
int prefill_tactic_of(int64_t tokens) {
  for (size_t i = 0; i < prefill_tactics.size(); ++i) {
    const PrefillTactic& t = prefill_tactics[i];
    if (t.everywhere && prefill_cluster(t) == 1 && t.tokens == tokens) return static_cast<int>(i);
  }
  return -1;
}

OperandNeeds needs_of(const Kernel& kernel, const LayerSpec& layer, DType dtype) {
  if (is_prefill_group(kernel)) return {kernel.activation, DType::bf16, units_along(layer.k) * kUnitColumns};
  return stream_needs(layer, kernel.activation, dtype);
}

}  // namespace

bool is_prefill_group(const Kernel& kernel) {
  const bool units =
      kernel.layout == &nvfp4_rows16_mma || kernel.layout == &mxfp4_rows16_mma || kernel.layout == &int4_rows16_mma;
  return kernel.platform == Platform::cuda && units && ends_with(kernel.name, "_prefill");
}
bool has_group_form(const Kernel& kernel) { return is_stream_group(kernel) || is_prefill_group(kernel); }

std::string refuses_group(const Kernel& kernel, std::span<const LayerWeights> experts) {
  if (!has_group_form(kernel)) return "kernel " + std::string(kernel.name) + ", which has no form for many experts";
  const LayerSpec& layer = *experts.front().spec;
  const auto& activation = layer.scheme.activation;
  if (quantizes(layer.scheme, kernel.activation) && activation->dynamic &&
      activation->granularity == Granularity::tensor)
    return "one activation scale for all tokens of an expert";
  for (const LayerWeights& expert : experts) {
    for (const PartWeights& part : expert.parts) {
      if (!part.group_index.empty()) return "columns in an order of their own for each expert";
      if (!part.pre_scale.empty()) return "activations scaled column by column for each expert";
      if (activation_versions(layer, kernel.activation) > 1 && !same_activations(expert.parts.front(), part))
        return "activation scales that differ between gate and up";
      if (part.scale_dtype != experts.front().parts.front().scale_dtype) return "scales of several types";
    }
  }
  return "";
}

StreamFunction::Pairs fused_pairs(const Kernel& kernel, const LayerSpec& layer, bool gated) {
  using Pairs = StreamFunction::Pairs;
  if (!is_stream_group(kernel)) return Pairs::none;
  if (!gated) return Pairs::alone;
  const bool interleaved = layer.row_order == RowOrder::interleaved;
  if (interleaved) return part_count(layer) == 1 ? Pairs::rows : Pairs::none;
  return layer.n % (2 * kUnitRows) == 0 ? Pairs::slabs : Pairs::none;
}

std::vector<ExpertScalars> expert_scalars(const Kernel& kernel, std::span<const LayerWeights> experts) {
  std::vector<ExpertScalars> scalars;
  const LayerSpec& layer = *experts.front().spec;
  const PartWeights& first = experts.front().parts.front();
  const bool differ = std::any_of(experts.begin(), experts.end(), [&](const LayerWeights& expert) {
    return !same_activations(first, expert.parts.front());
  });
  if (!quantizes(layer.scheme, kernel.activation) || !differ) return scalars;
  const ActivationScheme& a = *layer.scheme.activation;
  for (const LayerWeights& expert : experts) {
    const PartWeights& part = expert.parts.front();
    ExpertScalars own;
    if (a.format == Format::e2m1 && a.stored_scale) {
      own.global = nvfp4_input_global(a, part);
      own.factor = static_cast<float>(nvfp4_input_factor(a, part));
    } else if (!a.dynamic) {
      own.scale = part.input_scale;
      own.zero_point = part.input_zero_point;
      own.factor = part.input_scale > 0 ? part.input_scale : 0;
    }
    scalars.push_back(own);
  }
  return scalars;
}

int64_t group_tile_tokens(const Kernel& kernel, double rows) {
  if (!is_prefill_group(kernel)) return rows <= 6 ? 8 : 16;
  // An expert's last tile is half full on average.
  int64_t best = 0;
  double least = 0;
  for (const PrefillTactic& t : prefill_tactics) {
    if (prefill_tactic_of(t.tokens) < 0) continue;
    const double cost = std::max(1.0, rows / t.tokens + 0.5) * t.whole.unit;
    if (best != 0 && cost >= least) continue;
    best = t.tokens;
    least = cost;
  }
  return best;
}

int64_t grouped_workspace(const Kernel& kernel, const LayerSpec& layer, int64_t rows) {
  return operand_bytes(needs_of(kernel, layer, DType::bf16), rows);
}

std::vector<std::string_view> grouped_tactics(const Kernel& kernel) {
  if (is_prefill_group(kernel)) return {};
  return stream_tactic_names(stream_tactics_of(*kernel.layout));
}

#ifdef GEARSHIFT_CUDA_TARGETS

namespace {

bool launch_stream_group(const GroupedCall& args, const Operand& x, DType element, const GroupedTiles& group) {
  const Layout& layout = *args.kernel->layout;
  const LayerWeights& weights = args.experts.front();
  const LayerSpec& layer = *weights.spec;
  StreamFormat format = stream_format(layer, layout);
  format.half = element == DType::f16;
  PartRun rows;
  for (const PartWeights& part : weights.parts) rows.add(part);
  StreamCall call;
  point_at_weights(weights, args.packed, layout, format, rows, call);
  point_at_operand(x, layer.k, call);
  call.y = static_cast<uint16_t*>(args.y.data);
  call.y_stride = args.y.stride;
  call.m = static_cast<int>(args.tile_tokens);
  call.half_out = args.y.dtype == DType::f16;
  call.group = group;
  call.function = args.function;
  const bool paired = args.function.pairs == StreamFunction::Pairs::slabs;

  const StreamTactics tactics = stream_tactics_of(layout);
  const StreamDevice device = stream_device();
  const auto unit_bytes = static_cast<int>(format.unit_bytes);
  const int64_t slabs = std::max<int64_t>(1, call.rows / kUnitRows);
  int tactic = find_stream_tactic(tactics, args.tactic).tactic;
  if (args.tactic.empty()) {
    tactic = choose_stream_group_tactic(tactics, args.busy_tiles, slabs, call.units_along_k, call.m, unit_bytes,
                                        format.rare(), paired, device);
  }
  if (tactic < 0 || (paired && tactics[static_cast<size_t>(tactic)].slabs % 2 != 0) ||
      !stream_fits(tactics[static_cast<size_t>(tactic)], unit_bytes, slabs, call.m, device, format.rare()))
    return false;
  return launch_stream(call, format, tactic, args.stream);
}

bool launch_prefill_of(const GroupedCall& args, const Operand& x, const GroupedTiles& group) {
  const Layout& layout = *args.kernel->layout;
  const LayerWeights& weights = args.experts.front();
  const LayerSpec& layer = *weights.spec;
  const StreamFormat format = stream_format(layer, layout);
  PartRun rows;
  for (const PartWeights& part : weights.parts) rows.add(part);
  const int64_t units = units_along(layer.k), row_bytes = units * format.unit_bytes;
  PrefillLaunch launch;
  launch.tactic = prefill_tactic_of(args.tile_tokens);
  if (launch.tactic < 0) return false;
  const PrefillTactic& tactic = prefill_tactics[static_cast<size_t>(launch.tactic)];
  PrefillCall call;
  const auto* record = reinterpret_cast<const RowRecord*>(args.packed + rows16_records_at(layer, format.unit_bytes));
  call.rows = {&record->factor, &record->bias, &record->column, sizeof *record / 4,
               static_cast<int>(rows.slabs * kUnitRows)};
  call.y = static_cast<uint16_t*>(args.y.data);
  call.y_stride = args.y.stride;
  call.token_factor = x.token_factor;
  call.units = static_cast<int>(units);
  call.m = static_cast<int>(args.rows);
  call.row_tiles = static_cast<int>((rows.slabs * kUnitRows + prefill_rows(tactic) - 1) / prefill_rows(tactic));
  call.factor = static_cast<float>(x.factor);
  call.half_scales = weights.parts.front().scale_dtype == DType::f16;
  launch.blocks = static_cast<int>(std::min<int64_t>(limits().multiprocessors, int64_t{group.count} * call.row_tiles));
  launch.stream = args.stream;
  const MatrixBoxes tokens{x.data, 2, layer.k, args.rows, x.stride * 2, 64, tactic.tokens, true};
  const MatrixBoxes boxes{args.packed,
                          8,
                          row_bytes / 8,
                          rows.slabs,
                          row_bytes,
                          static_cast<int>(format.unit_bytes / 8),
                          prefill_rows(tactic) / 16,
                          false};
  const StackedBoxes of_experts{boxes, static_cast<int64_t>(args.experts.size()), group.expert_bytes};
  if (!make_tensor_map(tokens, launch.x) || !make_tensor_map(of_experts, launch.weights)) return false;
  if (format.code == StreamCode::nvfp4) return launch_prefill_group_nvfp4(call, group, launch);
  if (format.code == StreamCode::mxfp4) return launch_prefill_group_mxfp4(call, group, launch);
  return launch_prefill_group_int4(call, group, launch, 128 / format.groups, format.zeros);
}

}  // namespace

bool run_grouped(const GroupedCall& args) {
  const LayerWeights& weights = args.experts.front();
  const LayerSpec& layer = *weights.spec;
  OperandNeeds needs = needs_of(*args.kernel, layer, args.x.dtype);
  // Streaming takes rows of x where they are, as long as all experts see the same of them; otherwise they are sorted.
  const bool where_they_are = !is_prefill_group(*args.kernel) && args.chosen.scalars == nullptr;
  GroupedTiles group = args.group;
  if (where_they_are) {
    group.x_rows = args.chosen.source;
    group.x_divisor = static_cast<int>(args.rows / args.x.rows);
  } else {
    needs.chosen = args.chosen;
  }
  const int64_t rows = where_they_are ? args.x.rows : args.rows;
  RunArgs run;
  run.weights = &weights;
  run.x = args.x;
  run.stream = args.stream;
  Operand x;
  if (!make_operand(run, needs, 0, 0, rows, nullptr, args.workspace.data(), x)) return false;
  return is_prefill_group(*args.kernel) ? launch_prefill_of(args, x, group)
                                        : launch_stream_group(args, x, needs.element, group);
}

#else

bool run_grouped(const GroupedCall&) { return false; }
bool sort_tokens(const SortTokens&, void*) { return false; }
bool apply_function(const ApplyFunction&, void*) { return false; }
bool combine_rows(const CombineRows&, void*) { return false; }

#endif

}  // namespace gearshift::cuda
