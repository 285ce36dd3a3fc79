#include "kernel/cuda/prefill_rows.h"

#include "device/cuda.h"
#include "kernel/cuda/failure.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/prefill.h"
#include "kernel/cuda/prefill_launch.h"
#include "kernel/layout/code_rows.h"
#include "kernel/layout/rows16.h"
#include "kernel/output.h"
#include "kernel/reference/activation.h"

namespace gearshift {

namespace {

// Tokens of a tile where bits may not depend on M: little is lost for one token, and many still run at a fair rate.
constexpr int kInvariantTokens = 64;

struct RowScratch {
  uint8_t* operands = nullptr;  // [versions]
  int64_t operand_stride = 0;
  cuda::PrefillScratch shared;  // behind them: scales of tokens are read a tile past their end
};
int64_t carve_rows(const LayerSpec& layer, CodeProduct product, int64_t m, uint8_t* base, RowScratch* out) {
  Carver carver(base);
  RowScratch s;
  s.operand_stride = cuda::operand_bytes(code_needs(layer, product), m);
  s.operands = carver.take<uint8_t>(activation_versions(layer, ActivationUse::as_checkpoint) * s.operand_stride);
  s.shared = cuda::carve_prefill(carver);
  if (out != nullptr) *out = s;
  return carver.used();
}

#ifdef GEARSHIFT_CUDA_TARGETS

bool launch_product(const cuda::PrefillCall& call, const cuda::PrefillLaunch& launch, CodeProduct product) {
  if (product == CodeProduct::int8) return cuda::launch_prefill_int8_rows(call, launch);
  if (product == CodeProduct::e4m3) return cuda::launch_prefill_fp8_rows(call, launch);
  return cuda::launch_prefill_fp8_blocks(call, launch);
}

// One launch for consecutive rows of weights whose parts read the same version of x.
bool launch_prefill_rows(const RunArgs& args, CodeProduct product, const cuda::PrefillTable& table,
                         const RowScratch& scratch, const cuda::Operand& x, int64_t first_row, int64_t rows) {
  const LayerSpec& layer = *args.weights->spec;
  const CodeRows packed = code_rows_of(layer);
  const cuda::PrefillSize size = prefill_size(layer, code_rows, rows, args.x.rows);
  cuda::PrefillCall call;
  cuda::PrefillLaunch launch;
  if (!cuda::begin_prefill(args, table, size, scratch.shared, call, launch)) return false;
  const cuda::PrefillTactic& tactic = table.tactics[static_cast<size_t>(launch.tactic)];
  const auto floats = [&](int64_t section) { return reinterpret_cast<const float*>(args.packed + section); };
  call.rows.factors = floats(packed.factors) + first_row;
  if (packed.bias >= 0) call.rows.bias = floats(packed.bias) + first_row;
  call.rows.columns = reinterpret_cast<const int32_t*>(args.packed + packed.columns) + first_row;
  call.rows.count = static_cast<int>(rows);
  call.token_factor = x.token_factor;
  call.factor = static_cast<float>(x.factor);
  if (product == CodeProduct::e4m3_block) {
    call.row_scales = floats(packed.scales) + first_row * packed.groups;
    call.row_scale_step = packed.groups;
    call.token_scales = x.group_scales;
    call.token_scale_step = x.group_scale_step;
  }
  const cuda::MatrixBoxes tokens{
      x.data, 1, packed.row_bytes, args.x.rows, x.stride, 128, tactic.tokens / tactic.multicast, true};
  const cuda::MatrixBoxes weights{args.packed + first_row * packed.row_bytes,
                                  1,
                                  packed.row_bytes,
                                  rows,
                                  packed.row_bytes,
                                  128,
                                  cuda::prefill_rows(tactic),
                                  true};
  return cuda::make_tensor_map(tokens, launch.x) && cuda::make_tensor_map(weights, launch.weights) &&
         launch_product(call, launch, product);
}

void run_prefill_rows(const RunArgs& args, CodeProduct product, bool invariant) {
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  const int64_t m = args.x.rows;
  if (m == 0) return;
  RowScratch scratch;
  carve_rows(layer, product, m, args.workspace.data(), &scratch);
  const CodeRows packed = code_rows_of(layer);
  const cuda::PrefillTable table = prefill_rows_table(product, invariant);
  const int64_t versions = activation_versions(layer, ActivationUse::as_checkpoint);
  int64_t first_row = 0;
  for (size_t part = 0; part < weights.parts.size();) {
    const size_t first_part = part, version = activation_version(weights, part, versions);
    int64_t rows = 0;
    for (; part < weights.parts.size() && activation_version(weights, part, versions) == version; ++part)
      rows += weights.parts[part].n;
    const float* pre_scale = nullptr;
    if (packed.pre_scale >= 0)
      pre_scale =
          reinterpret_cast<const float*>(args.packed + packed.pre_scale) + static_cast<int64_t>(first_part) * layer.k;
    cuda::Operand x;
    if (!cuda::make_operand(args, code_needs(layer, product), first_part, 0, m, pre_scale,
                            scratch.operands + static_cast<int64_t>(version) * scratch.operand_stride, x) ||
        !launch_prefill_rows(args, product, table, scratch, x, first_row, rows))
      return cuda::failed(args);
    first_row += rows;
  }
}

template <CodeProduct Product, bool Invariant>
void run_prefill_rows_as(const RunArgs& args) {
  run_prefill_rows(args, Product, Invariant);
}
template <bool Invariant>
void (*run_prefill_rows_of(CodeProduct product))(const RunArgs&) {
  if (product == CodeProduct::e4m3) return run_prefill_rows_as<CodeProduct::e4m3, Invariant>;
  if (product == CodeProduct::e4m3_block) return run_prefill_rows_as<CodeProduct::e4m3_block, Invariant>;
  return run_prefill_rows_as<CodeProduct::int8, Invariant>;
}

#else

template <bool Invariant>
void (*run_prefill_rows_of(CodeProduct))(const RunArgs&) {
  return nullptr;
}

#endif

template <CodeProduct Product>
int64_t prefill_rows_workspace(const LayerSpec& layer, int64_t m, int) {
  return m == 0 ? 0 : carve_rows(layer, Product, m, nullptr, nullptr);
}

}  // namespace

cuda::PrefillTable prefill_rows_table(CodeProduct product, bool invariant) {
  cuda::PrefillTable table;
  table.tactics = cuda::prefill_row_tactics;
  // FP8 sums are there twice: in the tensor core's form and in fp32.
  if (product != CodeProduct::int8) table.most_sums = 96;
  if (invariant) table.only_whole = kInvariantTokens;
  return table;
}

Kernel make_cuda_prefill_rows(std::string_view name, CodeProduct product, bool invariant) {
  const bool int8 = product == CodeProduct::int8;
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "native";
  kernel.platform = Platform::cuda;
  kernel.layout = &code_rows;
  kernel.accumulator = int8 ? "int32" : "fp32";
  Contract& contract = kernel.contract;
  contract.archs = {"sm_90"};
  contract.dtypes = {DType::bf16};
  contract.weight_formats = {int8 ? Format::int8 : Format::e4m3};
  contract.n.max = int64_t{1} << 26;
  contract.k.max = int64_t{1} << 16;  // int32 sums of products of 2^14
  contract.zero_points = contract.act_order = contract.asymmetric_activations = false;
  contract.capture_safe = true;
  contract.bits_same_for_any_m = invariant;
  contract.verified = {"sm_90"};
  contract.targets = cuda::code_targets();
  kernel.bound_u = int8 ? 0x1p-24 : 0x1p-23;
  if (!int8) kernel.bound_product = kFp8SumLoss;
  kernel.workspace_bytes = product == CodeProduct::e4m3         ? prefill_rows_workspace<CodeProduct::e4m3>
                           : product == CodeProduct::e4m3_block ? prefill_rows_workspace<CodeProduct::e4m3_block>
                                                                : prefill_rows_workspace<CodeProduct::int8>;
  kernel.run = invariant ? run_prefill_rows_of<true>(product) : run_prefill_rows_of<false>(product);
  if (!invariant) kernel.tactics = cuda::prefill_tactic_names(prefill_rows_table(product, false));
  return kernel;
}

}  // namespace gearshift
