#include "kernel/cuda/stream.h"

#include <algorithm>
#include <array>

#include "device/cuda.h"
#include "kernel/cuda/bound_run.h"
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/failure.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/stage/stream_call.h"
#include "kernel/cuda/stream_tactics.h"
#include "kernel/layout/code_rows.h"
#include "kernel/layout/int4_rows16_mma.h"
#include "kernel/layout/mxfp4_rows16_mma.h"
#include "kernel/layout/nvfp4_rows16_mma.h"
#include "kernel/layout/rows16.h"
#include "kernel/output.h"
#include "kernel/reference/activation.h"

namespace gearshift {

namespace {

constexpr int64_t kMostTokens = 16;

bool is_rows(const Layout& layout) { return &layout == &code_rows; }

cuda::StreamTactics tactics_of(const Layout& layout) {
  if (is_rows(layout)) return cuda::stream_row_tactics;
  return cuda::stream_tactics;
}

// Quantized activations are exact in bf16, whatever type they had; fp32 scales of groups stay beside their codes.
cuda::OperandNeeds needs_of(const LayerSpec& layer, ActivationUse use, DType dtype) {
  cuda::OperandNeeds needs{use, dtype, units_along(layer.k) * kUnitColumns};
  if (!quantizes(layer.scheme, use)) return needs;
  needs.element = DType::bf16;
  const ActivationScheme& x = *layer.scheme.activation;
  const bool fp32_scales = x.rule == ScaleRule::amax || x.rule == ScaleRule::amax_pow2;
  if (x.granularity == Granularity::token_group && fp32_scales && x.format != Format::e2m1) {
    needs.group_scales = cuda::GroupScales::by_row;
    needs.group = x.group;
  }
  return needs;
}

int64_t stream_workspace(const LayerSpec& layer, ActivationUse use, int64_t m) {
  if (m == 0) return 0;
  return activation_versions(layer, use) * cuda::operand_bytes(needs_of(layer, use, DType::bf16), m);
}

#ifdef GEARSHIFT_CUDA_TARGETS

enum class StreamCode : uint8_t { nvfp4, mxfp4, int4, e4m3, int8, e2m3, e3m2 };

// What a launch depends on besides shapes.
struct StreamFormat {
  StreamCode code = StreamCode::nvfp4;
  int64_t unit_bytes = 0;
  int groups = 0;  // of int4
  bool zeros = false;
  cuda::StreamScales scales = cuda::StreamScales::none;  // of rows
  bool half = false;                                     // x is multiplied as fp16

  // Formats for which only the variants that suit most shapes are built.
  bool rare() const {
    return half ||
           (code == StreamCode::int4 ? groups != 1 : code >= StreamCode::e2m3 || scales != cuda::StreamScales::none);
  }
};

StreamFormat rows_format(const LayerSpec& layer, const CodeRows& rows) {
  StreamFormat format;
  format.unit_bytes = cuda::stream_row_tile_bytes;
  if (rows.scales >= 0) {
    format.scales = rows.exponents ? cuda::StreamScales::powers : cuda::StreamScales::one;
    format.unit_bytes += cuda::stream_row_scale_bytes;
  }
  switch (layer.scheme.weight.format) {
    case Format::e4m3:
      format.code = StreamCode::e4m3;
      break;
    case Format::e2m3:
      format.code = StreamCode::e2m3;
      break;
    case Format::e3m2:
      format.code = StreamCode::e3m2;
      break;
    default:
      format.code = StreamCode::int8;
  }
  return format;
}
StreamFormat stream_format(const LayerSpec& layer, const Layout& layout) {
  if (is_rows(layout)) return rows_format(layer, code_rows_of(layer));
  StreamFormat format;
  if (&layout == &nvfp4_rows16_mma) {
    format.unit_bytes = kNvfp4UnitBytes;
  } else if (&layout == &mxfp4_rows16_mma) {
    format.code = StreamCode::mxfp4;
    format.unit_bytes = kMxfp4UnitBytes;
  } else {
    format.code = StreamCode::int4;
    format.unit_bytes = int4_unit_bytes(layer);
    format.groups = static_cast<int>(int4_groups_in_unit(layer));
    format.zeros = !layer.scheme.weight.symmetric;
  }
  return format;
}

bool launch(const cuda::StreamCall& call, const StreamFormat& f, int tactic, void* stream, bool dependent) {
  switch (f.code) {
    case StreamCode::nvfp4:
      return cuda::launch_stream_nvfp4(call, tactic, f.half, stream, dependent);
    case StreamCode::mxfp4:
      return cuda::launch_stream_mxfp4(call, tactic, f.half, stream, dependent);
    case StreamCode::int4:
      if (f.groups == 1) return cuda::launch_stream_int4_128(call, tactic, f.zeros, f.half, stream, dependent);
      if (f.groups == 2) return cuda::launch_stream_int4_64(call, tactic, f.zeros, stream, dependent);
      return cuda::launch_stream_int4_32(call, tactic, f.zeros, stream, dependent);
    case StreamCode::e4m3:
      return cuda::launch_stream_e4m3(call, tactic, f.scales, f.half, stream, dependent);
    case StreamCode::e2m3:
    case StreamCode::e3m2:
      return cuda::launch_stream_fp6(call, tactic, f.code == StreamCode::e3m2, f.half, stream, dependent);
    case StreamCode::int8:
      return cuda::launch_stream_int8(call, tactic, f.scales, f.half, stream, dependent);
  }
  return false;
}

// Consecutive parts that read the same version of x.
struct PartRun {
  size_t first_part = 0;
  int64_t first_row = 0, rows = 0;    // of the layer
  int64_t first_slab = 0, slabs = 0;  // of units: each part begins a slab
  bool whole_slabs = true;            // of rows: every part is whole slabs
};

void point_at_units(const RunArgs& args, const StreamFormat& format, const PartRun& run, cuda::StreamCall& call) {
  const LayerSpec& layer = *args.weights->spec;
  call.units = args.packed + run.first_slab * call.units_along_k * format.unit_bytes;
  call.records = reinterpret_cast<const uint32_t*>(args.packed + rows16_records_at(layer, format.unit_bytes)) +
                 run.first_slab * kUnitRows * 4;
  call.rows = static_cast<int>(run.slabs * kUnitRows);
  call.half_scales = args.weights->parts[run.first_part].scale_dtype == DType::f16;
}
void point_at_rows(const RunArgs& args, const PartRun& run, cuda::StreamCall& call) {
  const LayerSpec& layer = *args.weights->spec;
  const CodeRows rows = code_rows_of(layer);
  const auto floats = [&](int64_t section) {
    return reinterpret_cast<const float*>(args.packed + section) + run.first_row;
  };
  call.units = args.packed + run.first_row * rows.row_bytes;
  call.row_bytes = rows.row_bytes;
  call.rows = static_cast<int>(run.rows);
  call.factors = floats(rows.factors);
  call.columns = reinterpret_cast<const int32_t*>(args.packed + rows.columns) + run.first_row;
  if (rows.bias >= 0) call.bias = floats(rows.bias);
  if (rows.scales < 0) return;
  call.scales = args.packed + rows.scales + run.first_row * rows.scale_row_bytes;
  call.scale_row_bytes = rows.scale_row_bytes;
  const Grouping& grouping = layer.scheme.weight.grouping;
  const bool shared = grouping.kind == Grouping::Kind::block && grouping.rows % kUnitRows == 0 && run.whole_slabs;
  call.scale_row_step = shared ? 0 : 1;
}

bool launch_parts(const RunArgs& args, const Layout& layout, StreamFormat format, const cuda::Operand& x, DType element,
                  const PartRun& run) {
  const LayerSpec& layer = *args.weights->spec;
  const cuda::Limits& limits = cuda::limits();
  cuda::StreamCall call;
  call.units_along_k = static_cast<int>(units_along(layer.k));
  if (is_rows(layout))
    point_at_rows(args, run, call);
  else
    point_at_units(args, format, run, call);
  call.x = static_cast<const uint16_t*>(x.data);
  call.x_stride = x.stride;
  call.x_scales = x.group_scales;
  call.x_scale_stride = x.group_scale_row;
  call.y = static_cast<uint16_t*>(args.y.data);
  call.y_stride = args.y.stride;
  call.token_factor = x.token_factor;
  call.k = static_cast<int>(x.padded ? x.stride : layer.k);
  call.m = static_cast<int>(args.x.rows);
  call.factor = static_cast<float>(x.factor);
  call.half_out = args.y.dtype == DType::f16;
  format.half = element == DType::f16;

  const cuda::StreamDevice device{limits.multiprocessors, limits.shared_bytes_per_block,
                                  limits.shared_bytes_per_multiprocessor, limits.major >= 9 && limits.major < 12};
  call.alone_bytes = std::min(limits.shared_bytes_per_block, limits.shared_bytes_per_multiprocessor / 2);
  const auto unit_bytes = static_cast<int>(format.unit_bytes);
  // Blocks overlap their neighbour rather than end past the last row: only whole slabs count.
  const int64_t slabs = std::max<int64_t>(1, call.rows / kUnitRows);
  const cuda::StreamTactics tactics = tactics_of(layout);
  cuda::StreamChoice choice;
  if (!args.tactic.empty()) choice = cuda::find_stream_tactic(tactics, args.tactic);
  const bool usable =
      choice.tactic >= 0 && (choice.cluster == 1 || device.clusters) &&
      cuda::stream_fits(tactics[static_cast<size_t>(choice.tactic)], unit_bytes, slabs, call.m, device, format.rare());
  // A tactic that this shape or device has no room for is not an order: the kernel chooses.
  if (!usable)
    choice = cuda::choose_stream_tactic(tactics, slabs, call.units_along_k, call.m, unit_bytes, format.rare(), device);
  if (choice.tactic < 0) return false;
  call.cluster = choice.cluster;
  return launch(call, format, choice.tactic, args.stream, limits.major >= 9);
}

void run_stream(const RunArgs& args, ActivationUse use, const Layout& layout) {
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  const int64_t m = args.x.rows;
  if (m == 0) return;
  const int64_t versions = activation_versions(layer, use);
  const StreamFormat format = stream_format(layer, layout);
  const cuda::OperandNeeds needs = needs_of(layer, use, args.x.dtype);
  const int64_t operand_stride = cuda::operand_bytes(needs, m);
  const int64_t pre_scale = is_rows(layout) ? code_rows_of(layer).pre_scale : -1;
  const int64_t order_at = &layout == &int4_rows16_mma ? int4_column_order_at(layer) : -1;
  PartRun run;
  for (size_t part = 0; part < weights.parts.size();) {
    const size_t version = activation_version(weights, part, versions);
    run.first_part = part;
    run.rows = run.slabs = 0;
    // Parts with a column order of their own each gather x for themselves.
    const size_t end = order_at >= 0 ? part + 1 : weights.parts.size();
    for (; part < end && activation_version(weights, part, versions) == version; ++part) {
      const int64_t n = weights.parts[part].n;
      run.rows += n;
      run.slabs += slabs_of_part(n);
      run.whole_slabs = run.whole_slabs && n % kUnitRows == 0;
    }
    const float* vector = nullptr;
    if (pre_scale >= 0)
      vector = reinterpret_cast<const float*>(args.packed + pre_scale) + static_cast<int64_t>(run.first_part) * layer.k;
    const int32_t* gather = nullptr;
    if (order_at >= 0)
      gather =
          reinterpret_cast<const int32_t*>(args.packed + order_at) + static_cast<int64_t>(run.first_part) * layer.k;
    cuda::Operand x;
    if (!cuda::make_operand(args, needs, run.first_part, 0, m, vector,
                            args.workspace.data() + static_cast<int64_t>(version) * operand_stride, x, gather) ||
        !launch_parts(args, layout, format, x, needs.element, run))
      return cuda::failed(args);
    run.first_row += run.rows;
    run.first_slab += run.slabs;
  }
}

cuda::Run run_stream_of(ActivationUse use, const Layout& layout) {
  return cuda::bound_run<run_stream, &nvfp4_rows16_mma, &mxfp4_rows16_mma, &int4_rows16_mma, &code_rows>(use, layout);
}

#else

cuda::Run run_stream_of(ActivationUse, const Layout&) { return nullptr; }

#endif

}  // namespace

Kernel make_cuda_stream(std::string_view name, ActivationUse use, const Layout& layout) {
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "native";
  kernel.platform = Platform::cuda;
  kernel.activation = use;
  kernel.layout = &layout;
  Contract& contract = kernel.contract;
  contract.archs = cuda_archs();
  contract.dtypes = {DType::bf16, DType::f16};
  contract.m.max = kMostTokens;
  contract.n.max = int64_t{1} << 30;
  contract.k.max = int64_t{1} << 24;
  contract.act_order = &layout == &int4_rows16_mma;
  if (!is_rows(layout)) contract.pre_scale = contract.partial_groups = false;
  contract.capture_safe = true;
  contract.verified = {"sm_90"};
  contract.activation_groups = {16, 32, 64, 128};  // groups of neighbouring lanes (stage/prepare_x.cu)
  kernel.contract.targets = cuda::code_targets();
  kernel.bound_u = 0x1p-23;  // tensor cores add with a little less than fp32
  kernel.workspace_bytes =
      use == ActivationUse::as_checkpoint
          ? [](const LayerSpec& layer, int64_t m,
               int) { return stream_workspace(layer, ActivationUse::as_checkpoint, m); }
          : [](const LayerSpec& layer, int64_t m, int) { return stream_workspace(layer, ActivationUse::float16, m); };
  kernel.run = run_stream_of(use, layout);
  kernel.tactics = cuda::stream_tactic_names(tactics_of(layout));
  return kernel;
}

}  // namespace gearshift
