#include "kernel/cuda/stream.h"

#include <algorithm>
#include <array>

#include "device/cuda.h"
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/failure.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/stage/stream_call.h"
#include "kernel/cuda/stream_tactics.h"
#include "kernel/layout/int4_rows16_mma.h"
#include "kernel/layout/mxfp4_rows16_mma.h"
#include "kernel/layout/nvfp4_rows16_mma.h"
#include "kernel/layout/rows16.h"
#include "kernel/output.h"
#include "kernel/reference/activation.h"

namespace gearshift {

namespace {

constexpr int64_t kMostTokens = 16;

cuda::OperandNeeds needs_of(const LayerSpec& layer, ActivationUse use) {
  return {use, DType::bf16, units_along(layer.k) * kUnitColumns};
}

int64_t stream_workspace(const LayerSpec& layer, ActivationUse use, int64_t m) {
  if (m == 0) return 0;
  return activation_versions(layer, use) * cuda::operand_bytes(needs_of(layer, use), m);
}

#ifdef GEARSHIFT_CUDA_TARGETS

struct StreamFormat {
  int64_t unit_bytes = 0;
  int groups = 0;  // of int4
  bool zeros = false, rare = false;
};
StreamFormat stream_format(const LayerSpec& layer, const Layout& layout) {
  if (&layout == &nvfp4_rows16_mma) return {kNvfp4UnitBytes, 0, false, false};
  if (&layout == &mxfp4_rows16_mma) return {kMxfp4UnitBytes, 0, false, false};
  const auto groups = static_cast<int>(int4_groups_in_unit(layer));
  return {int4_unit_bytes(layer), groups, !layer.scheme.weight.symmetric, groups != 1};
}

bool launch(const cuda::StreamCall& call, const StreamFormat& format, const Layout& layout, int tactic, void* stream,
            bool dependent) {
  if (&layout == &nvfp4_rows16_mma) return cuda::launch_stream_nvfp4(call, tactic, stream, dependent);
  if (&layout == &mxfp4_rows16_mma) return cuda::launch_stream_mxfp4(call, tactic, stream, dependent);
  if (format.groups == 1) return cuda::launch_stream_int4_128(call, tactic, format.zeros, stream, dependent);
  if (format.groups == 2) return cuda::launch_stream_int4_64(call, tactic, format.zeros, stream, dependent);
  return cuda::launch_stream_int4_32(call, tactic, format.zeros, stream, dependent);
}

// One launch for consecutive parts that read the same version of x.
bool launch_slabs(const RunArgs& args, const Layout& layout, const StreamFormat& format, const cuda::Operand& x,
                  size_t first_part, int64_t first_slab, int64_t slabs) {
  const LayerSpec& layer = *args.weights->spec;
  const cuda::Limits& limits = cuda::limits();
  cuda::StreamCall call;
  call.units_along_k = static_cast<int>(units_along(layer.k));
  call.units = args.packed + first_slab * call.units_along_k * format.unit_bytes;
  call.records = reinterpret_cast<const uint32_t*>(args.packed + rows16_records_at(layer, format.unit_bytes)) +
                 first_slab * kUnitRows * 4;
  call.x = static_cast<const uint16_t*>(x.data);
  call.x_stride = x.stride;
  call.y = static_cast<uint16_t*>(args.y.data);
  call.y_stride = args.y.stride;
  call.token_factor = x.token_factor;
  call.slabs = static_cast<int>(slabs);
  call.k = static_cast<int>(layer.k);
  call.m = static_cast<int>(args.x.rows);
  call.factor = static_cast<float>(x.factor);
  call.half_scales = args.weights->parts[first_part].scale_dtype == DType::f16;
  const cuda::StreamDevice device{limits.multiprocessors, limits.shared_bytes_per_block,
                                  limits.shared_bytes_per_multiprocessor, limits.major >= 9 && limits.major < 12};
  call.alone_bytes = std::min(limits.shared_bytes_per_block, limits.shared_bytes_per_multiprocessor / 2);
  const auto unit_bytes = static_cast<int>(format.unit_bytes);
  cuda::StreamChoice choice;
  if (!args.tactic.empty()) choice = cuda::find_stream_tactic(args.tactic);
  const bool usable = choice.tactic >= 0 && (choice.cluster == 1 || device.clusters) &&
                      cuda::stream_fits(cuda::stream_tactics[static_cast<size_t>(choice.tactic)], unit_bytes, slabs,
                                        call.m, device, format.rare);
  if (!usable && !args.tactic.empty()) return false;
  if (!usable) choice = cuda::choose_stream_tactic(slabs, call.units_along_k, call.m, unit_bytes, format.rare, device);
  if (choice.tactic < 0) return false;
  call.cluster = choice.cluster;
  return launch(call, format, layout, choice.tactic, args.stream, limits.major >= 9);
}

void run_stream(const RunArgs& args, ActivationUse use, const Layout& layout) {
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  const int64_t m = args.x.rows;
  if (m == 0) return;
  const int64_t versions = activation_versions(layer, use);
  const StreamFormat format = stream_format(layer, layout);
  const cuda::OperandNeeds needs = needs_of(layer, use);
  const int64_t operand_stride = cuda::operand_bytes(needs, m);
  int64_t first_slab = 0;
  for (size_t part = 0; part < weights.parts.size();) {
    const size_t version = activation_version(weights, part, versions);
    int64_t slabs = 0;
    const size_t first_part = part;
    for (; part < weights.parts.size() && activation_version(weights, part, versions) == version; ++part)
      slabs += slabs_of_part(weights.parts[part].n);
    cuda::Operand x;
    if (!cuda::make_operand(args, needs, first_part, 0, m, nullptr,
                            args.workspace.data() + static_cast<int64_t>(version) * operand_stride, x) ||
        !launch_slabs(args, layout, format, x, first_part, first_slab, slabs))
      return cuda::failed(args);
    first_slab += slabs;
  }
}

template <ActivationUse Use, const Layout* L>
void run_stream_as(const RunArgs& args) {
  run_stream(args, Use, *L);
}
template <const Layout* L>
void (*run_stream_for(ActivationUse use))(const RunArgs&) {
  return use == ActivationUse::as_checkpoint ? run_stream_as<ActivationUse::as_checkpoint, L>
                                             : run_stream_as<ActivationUse::float16, L>;
}
void (*run_stream_of(ActivationUse use, const Layout& layout))(const RunArgs&) {
  if (&layout == &nvfp4_rows16_mma) return run_stream_for<&nvfp4_rows16_mma>(use);
  if (&layout == &mxfp4_rows16_mma) return run_stream_for<&mxfp4_rows16_mma>(use);
  return run_stream_for<&int4_rows16_mma>(use);
}

#else

void (*run_stream_of(ActivationUse, const Layout&))(const RunArgs&) { return nullptr; }

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
  contract.dtypes = {DType::bf16};
  contract.m.max = kMostTokens;
  contract.n.max = int64_t{1} << 30;
  contract.k.max = int64_t{1} << 24;
  contract.act_order = contract.pre_scale = contract.partial_groups = false;
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
  kernel.tactics = cuda::stream_tactic_names();
  return kernel;
}

}  // namespace gearshift
