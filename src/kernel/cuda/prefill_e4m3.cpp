#include "kernel/cuda/prefill_e4m3.h"

#include "device/cuda.h"
#include "kernel/cuda/bound_run.h"
#include "kernel/cuda/failure.h"
#include "kernel/cuda/library_w8a8.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/prefill_launch.h"
#include "kernel/layout/int4_rows16_e4m3.h"
#include "kernel/layout/mxfp4_rows16_e4m3.h"
#include "kernel/layout/rows16_e4m3.h"
#include "kernel/output.h"
#include "kernel/reference/activation.h"

namespace gearshift {

namespace {

constexpr ActivationUse kE4m3Use = ActivationUse::as_checkpoint;

cuda::PrefillTable e4m3_table() {
  cuda::PrefillTable table;
  table.tactics = cuda::prefill_e4m3_tactics;
  table.most_sums = 96;  // they are there twice
  return table;
}

cuda::OperandNeeds e4m3_needs(const LayerSpec& layer) {
  return {kE4m3Use, DType::u8, units_along(layer.k) * kUnitColumns};
}

struct E4m3Scratch {
  cuda::PrefillScratch shared;
  uint8_t* operands = nullptr;  // [versions]
  int64_t operand_stride = 0;
};
int64_t carve_e4m3(const LayerSpec& layer, int64_t m, uint8_t* base, E4m3Scratch* out) {
  Carver carver(base);
  E4m3Scratch s;
  s.shared = cuda::carve_prefill(carver);
  s.operand_stride = cuda::operand_bytes(e4m3_needs(layer), m);
  s.operands = carver.take<uint8_t>(activation_versions(layer, kE4m3Use) * s.operand_stride);
  if (out != nullptr) *out = s;
  return carver.used();
}

#ifdef GEARSHIFT_CUDA_TARGETS

// One launch for consecutive parts that read the same version of x.
bool launch_e4m3_slabs(const RunArgs& args, const Layout& layout, const E4m3Scratch& scratch, const cuda::Operand& x,
                       int64_t first_slab, int64_t slabs) {
  const LayerSpec& layer = *args.weights->spec;
  const int64_t units = units_along(layer.k);
  const cuda::PrefillTable table = e4m3_table();
  const cuda::PrefillSize size{slabs * kUnitRows, units, args.x.rows, cuda::limits().multiprocessors,
                               slabs * units * kE4m3UnitBytes};
  cuda::PrefillCall call;
  cuda::PrefillLaunch launch;
  if (!cuda::begin_prefill(args, table, size, scratch.shared, call, launch)) return false;
  const cuda::PrefillTactic& tactic = table.tactics[static_cast<size_t>(launch.tactic)];
  const auto* record = reinterpret_cast<const RowRecord*>(args.packed + rows16_records_at(layer, kE4m3UnitBytes)) +
                       first_slab * kUnitRows;
  call.rows = {&record->factor, &record->bias, &record->column, sizeof *record / 4,
               static_cast<int>(slabs * kUnitRows)};
  call.token_factor = x.token_factor;
  call.factor = static_cast<float>(x.factor);
  const cuda::MatrixBoxes tokens{x.data, 1, x.stride, args.x.rows, x.stride, 128, tactic.tokens / tactic.multicast,
                                 true};
  // The largest element that a map has, so that a unit is a box.
  const cuda::MatrixBoxes weights{args.packed + first_slab * units * kE4m3UnitBytes,
                                  8,
                                  units * kE4m3UnitBytes / 8,
                                  slabs,
                                  units * kE4m3UnitBytes,
                                  kE4m3UnitBytes / 8,
                                  cuda::prefill_rows(tactic) / 16,
                                  false};
  if (!cuda::make_tensor_map(tokens, launch.x) || !cuda::make_tensor_map(weights, launch.weights)) return false;
  if (&layout == &int4_rows16_e4m3) return cuda::launch_prefill_int4_e4m3(call, launch);
  call.passes = reinterpret_cast<const uint32_t*>(args.packed + mxfp4_e4m3_passes_at(layer));
  return cuda::launch_prefill_mxfp4_e4m3(call, launch);
}

void run_prefill_e4m3(const RunArgs& args, ActivationUse, const Layout& layout) {
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  const int64_t m = args.x.rows;
  if (m == 0) return;
  E4m3Scratch scratch;
  carve_e4m3(layer, m, args.workspace.data(), &scratch);
  const int64_t versions = activation_versions(layer, kE4m3Use);
  const int64_t pre_scale_at = &layout == &int4_rows16_e4m3 ? int4_e4m3_pre_scale_at(layer) : -1;
  int64_t first_slab = 0;
  for (size_t part = 0; part < weights.parts.size();) {
    const size_t first_part = part, version = activation_version(weights, part, versions);
    int64_t slabs = 0;
    for (; part < weights.parts.size() && activation_version(weights, part, versions) == version; ++part)
      slabs += slabs_of_part(weights.parts[part].n);
    const float* pre_scale = nullptr;
    if (pre_scale_at >= 0)
      pre_scale =
          reinterpret_cast<const float*>(args.packed + pre_scale_at) + static_cast<int64_t>(first_part) * layer.k;
    cuda::Operand x;
    if (!cuda::make_operand(args, e4m3_needs(layer), first_part, 0, m, pre_scale,
                            scratch.operands + static_cast<int64_t>(version) * scratch.operand_stride, x) ||
        !launch_e4m3_slabs(args, layout, scratch, x, first_slab, slabs))
      return cuda::failed(args);
    first_slab += slabs;
  }
}

cuda::Run run_e4m3_of(const Layout& layout) {
  return cuda::bound_run<run_prefill_e4m3, &mxfp4_rows16_e4m3, &int4_rows16_e4m3>(kE4m3Use, layout);
}

#else

cuda::Run run_e4m3_of(const Layout&) { return nullptr; }

#endif

}  // namespace

Kernel make_cuda_prefill_e4m3(std::string_view name, const Layout& layout) {
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "native";
  kernel.platform = Platform::cuda;
  kernel.layout = &layout;
  Contract& contract = kernel.contract;
  contract.archs = {"sm_90"};
  contract.dtypes = {DType::bf16};
  contract.activation_formats = {Format::e4m3};
  contract.activation_granularities = {Granularity::token, Granularity::tensor};
  contract.n.max = int64_t{1} << 26;
  contract.k.max = int64_t{1} << 24;
  contract.zero_points = contract.act_order = contract.asymmetric_activations = false;
  contract.capture_safe = true;
  contract.verified = {"sm_90"};
  contract.targets = cuda::code_targets();
  kernel.bound_u = 0x1p-23;
  kernel.bound_product = kFp8SumLoss;
  kernel.workspace_bytes = [](const LayerSpec& layer, int64_t m, int) {
    return m == 0 ? 0 : carve_e4m3(layer, m, nullptr, nullptr);
  };
  kernel.run = run_e4m3_of(layout);
  kernel.tactics = cuda::prefill_tactic_names(e4m3_table());
  return kernel;
}

}  // namespace gearshift
