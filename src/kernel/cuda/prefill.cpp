#include "kernel/cuda/prefill.h"

#include "device/cuda.h"
#include "kernel/cuda/bound_run.h"
#include "kernel/cuda/failure.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/prefill_launch.h"
#include "kernel/layout/int4_rows16_mma.h"
#include "kernel/layout/mxfp4_rows16_mma.h"
#include "kernel/layout/nvfp4_rows16_mma.h"
#include "kernel/layout/rows16.h"
#include "kernel/output.h"
#include "kernel/reference/activation.h"

namespace gearshift {

namespace {

cuda::OperandNeeds prefill_needs(const LayerSpec& layer, ActivationUse use) {
  return {use, DType::bf16, units_along(layer.k) * kUnitColumns};
}

struct UnitScratch {
  cuda::PrefillScratch shared;
  uint8_t* operands = nullptr;  // [versions] of operand_bytes
  int64_t operand_stride = 0;
};
int64_t carve_units(const LayerSpec& layer, ActivationUse use, int64_t m, uint8_t* base, UnitScratch* out) {
  Carver carver(base);
  UnitScratch s;
  s.shared = cuda::carve_prefill(carver);
  s.operand_stride = cuda::operand_bytes(prefill_needs(layer, use), m);
  s.operands = carver.take<uint8_t>(activation_versions(layer, use) * s.operand_stride);
  if (out != nullptr) *out = s;
  return carver.used();
}

#ifdef GEARSHIFT_CUDA_TARGETS

int64_t unit_bytes_of(const LayerSpec& layer, const Layout& layout) {
  if (&layout == &nvfp4_rows16_mma) return kNvfp4UnitBytes;
  if (&layout == &mxfp4_rows16_mma) return kMxfp4UnitBytes;
  return int4_unit_bytes(layer);
}

bool launch_format(const cuda::PrefillCall& call, const cuda::PrefillLaunch& launch, const LayerSpec& layer,
                   const Layout& layout) {
  if (&layout == &nvfp4_rows16_mma) return cuda::launch_prefill_nvfp4(call, launch);
  if (&layout == &mxfp4_rows16_mma) return cuda::launch_prefill_mxfp4(call, launch);
  const bool zeros = !layer.scheme.weight.symmetric;
  const int64_t groups = int4_groups_in_unit(layer);
  if (groups == 1) return cuda::launch_prefill_int4_128(call, launch, zeros);
  if (groups == 2) return cuda::launch_prefill_int4_64(call, launch, zeros);
  return cuda::launch_prefill_int4_32(call, launch, zeros);
}

// One launch for consecutive parts that read the same version of x.
bool launch_prefill_slabs(const RunArgs& args, const Layout& layout, const UnitScratch& scratch, const cuda::Operand& x,
                          size_t first_part, int64_t first_slab, int64_t slabs) {
  const LayerSpec& layer = *args.weights->spec;
  const int64_t unit_bytes = unit_bytes_of(layer, layout), units = units_along(layer.k);
  cuda::PrefillTable table;
  table.rare = &layout == &int4_rows16_mma && int4_groups_in_unit(layer) != 1;
  const cuda::PrefillSize size{slabs * kUnitRows, units, args.x.rows, cuda::limits().multiprocessors};
  cuda::PrefillCall call;
  cuda::PrefillLaunch launch;
  if (!cuda::begin_prefill(args, table, size, scratch.shared, call, launch)) return false;
  const cuda::PrefillTactic& tactic = table.tactics[static_cast<size_t>(launch.tactic)];
  const auto* record =
      reinterpret_cast<const RowRecord*>(args.packed + rows16_records_at(layer, unit_bytes)) + first_slab * kUnitRows;
  call.rows = {&record->factor, &record->bias, &record->column, sizeof *record / 4,
               static_cast<int>(slabs * kUnitRows)};
  call.token_factor = x.token_factor;
  call.factor = static_cast<float>(x.factor);
  call.half_scales = args.weights->parts[first_part].scale_dtype == DType::f16;
  const cuda::MatrixBoxes tokens{x.data, 2, layer.k, args.x.rows, x.stride * 2, 64, tactic.tokens / tactic.multicast,
                                 true};
  // The largest element that a map has, so that a unit is a box.
  const cuda::MatrixBoxes weights{args.packed + first_slab * units * unit_bytes,
                                  8,
                                  units * unit_bytes / 8,
                                  slabs,
                                  units * unit_bytes,
                                  static_cast<int>(unit_bytes / 8),
                                  cuda::prefill_rows(tactic) / 16,
                                  false};
  return cuda::make_tensor_map(tokens, launch.x) && cuda::make_tensor_map(weights, launch.weights) &&
         launch_format(call, launch, layer, layout);
}

void run_prefill(const RunArgs& args, ActivationUse use, const Layout& layout) {
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  const int64_t m = args.x.rows;
  if (m == 0) return;
  UnitScratch scratch;
  carve_units(layer, use, m, args.workspace.data(), &scratch);
  const int64_t versions = activation_versions(layer, use);
  int64_t first_slab = 0;
  for (size_t part = 0; part < weights.parts.size();) {
    const size_t version = activation_version(weights, part, versions);
    int64_t slabs = 0;
    const size_t first_part = part;
    for (; part < weights.parts.size() && activation_version(weights, part, versions) == version; ++part)
      slabs += slabs_of_part(weights.parts[part].n);
    cuda::Operand x;
    if (!cuda::make_operand(args, prefill_needs(layer, use), first_part, 0, m, nullptr,
                            scratch.operands + static_cast<int64_t>(version) * scratch.operand_stride, x) ||
        !launch_prefill_slabs(args, layout, scratch, x, first_part, first_slab, slabs))
      return cuda::failed(args);
    first_slab += slabs;
  }
}

cuda::Run run_prefill_of(ActivationUse use, const Layout& layout) {
  return cuda::bound_run<run_prefill, &nvfp4_rows16_mma, &mxfp4_rows16_mma, &int4_rows16_mma>(use, layout);
}

#else

cuda::Run run_prefill_of(ActivationUse, const Layout&) { return nullptr; }

#endif

}  // namespace

Kernel make_cuda_prefill(std::string_view name, ActivationUse use, const Layout& layout) {
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "native";
  kernel.platform = Platform::cuda;
  kernel.activation = use;
  kernel.layout = &layout;
  Contract& contract = kernel.contract;
  contract.archs = {"sm_90"};
  contract.dtypes = {DType::bf16};
  contract.n.max = int64_t{1} << 26;
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
               int) { return m == 0 ? 0 : carve_units(layer, ActivationUse::as_checkpoint, m, nullptr, nullptr); }
          : [](const LayerSpec& layer, int64_t m, int) {
              return m == 0 ? 0 : carve_units(layer, ActivationUse::float16, m, nullptr, nullptr);
            };
  kernel.run = run_prefill_of(use, layout);
  kernel.tactics = cuda::prefill_tactic_names({});
  return kernel;
}

}  // namespace gearshift
