#include "kernel/cuda/stream.h"

#include <algorithm>
#include <array>

#include "device/cuda.h"
#include "kernel/cuda/bound_run.h"
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/failure.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/stream_launch.h"
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

cuda::StreamTactics tactics_of(const Layout& layout) {
  if (cuda::streams_rows(layout)) return cuda::stream_row_tactics;
  return cuda::stream_tactics;
}

int64_t stream_workspace(const LayerSpec& layer, ActivationUse use, int64_t m) {
  if (m == 0) return 0;
  return activation_versions(layer, use) * cuda::operand_bytes(cuda::stream_needs(layer, use, DType::bf16), m);
}

#ifdef GEARSHIFT_CUDA_TARGETS

bool launch_parts(const RunArgs& args, const Layout& layout, cuda::StreamFormat format, const cuda::Operand& x,
                  DType element, const cuda::PartRun& run) {
  const LayerSpec& layer = *args.weights->spec;
  const cuda::Limits& limits = cuda::limits();
  cuda::StreamCall call;
  point_at_weights(*args.weights, args.packed, layout, format, run, call);
  point_at_operand(x, layer.k, call);
  call.y = static_cast<uint16_t*>(args.y.data);
  call.y_stride = args.y.stride;
  call.m = static_cast<int>(args.x.rows);
  call.half_out = args.y.dtype == DType::f16;
  format.half = element == DType::f16;

  const cuda::StreamDevice device = cuda::stream_device();
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
  return cuda::launch_stream(call, format, choice.tactic, args.stream);
}

void run_stream(const RunArgs& args, ActivationUse use, const Layout& layout) {
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  const int64_t m = args.x.rows;
  if (m == 0) return;
  const int64_t versions = activation_versions(layer, use);
  const cuda::StreamFormat format = cuda::stream_format(layer, layout);
  const cuda::OperandNeeds needs = cuda::stream_needs(layer, use, args.x.dtype);
  const int64_t operand_stride = cuda::operand_bytes(needs, m);
  const int64_t pre_scale = cuda::streams_rows(layout) ? code_rows_of(layer).pre_scale : -1;
  const int64_t order_at = &layout == &int4_rows16_mma ? int4_column_order_at(layer) : -1;
  cuda::PartRun run;
  for (size_t part = 0; part < weights.parts.size();) {
    const size_t version = activation_version(weights, part, versions);
    run.first_part = part;
    run.rows = run.slabs = 0;
    // Parts with a column order of their own each gather x for themselves.
    const size_t end = order_at >= 0 ? part + 1 : weights.parts.size();
    for (; part < end && activation_version(weights, part, versions) == version; ++part) run.add(weights.parts[part]);
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
  if (!cuda::streams_rows(layout)) contract.pre_scale = contract.partial_groups = false;
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
