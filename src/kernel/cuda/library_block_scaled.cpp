#include "kernel/cuda/library_block_scaled.h"

#include <algorithm>

#include "base/math.h"
#include "device/cublaslt.h"
#include "device/cuda.h"
#include "kernel/cuda/failure.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/stage/panel.h"
#include "kernel/layout/scaled_tiles.h"
#include "kernel/output.h"
#include "kernel/parts.h"
#include "kernel/reference/activation.h"

namespace gearshift {

namespace {

constexpr int64_t kMostScaledRows = 8192;  // of x at a time

cuda::OperandNeeds tile_needs(const LayerSpec& layer) {
  cuda::OperandNeeds needs;
  const ScaledTiles at = scaled_tiles_of(layer);
  needs.element = DType::u8;
  needs.columns = at.columns;
  needs.group_scales = cuda::GroupScales::tiles_128x4;
  needs.group = at.group;
  return needs;
}

struct TileScratch {
  uint8_t* library = nullptr;
  float* sums = nullptr;  // [rows][rows of the largest part]
  uint8_t* operand = nullptr;
};
int64_t carve_tiles(const LayerSpec& layer, int64_t m, uint8_t* base, TileScratch* out) {
  const int64_t rows = std::min(m, kMostScaledRows);
  int64_t most = 0;
  for (size_t part = 0; part < part_count(layer); ++part) most = std::max(most, part_rows(layer, part));
  Carver carver(base);
  TileScratch s;
  s.library = carver.take_aligned<uint8_t>(cuda::cublaslt_workspace_bytes, cuda::cublaslt_alignment);
  s.sums = carver.take_aligned<float>(rows * most, cuda::cublaslt_alignment);
  s.operand = carver.take_aligned<uint8_t>(cuda::operand_bytes(tile_needs(layer), rows), cuda::cublaslt_alignment);
  if (out != nullptr) *out = s;
  return carver.used();
}

int64_t tile_workspace(const LayerSpec& layer, int64_t m, int) {
  return m == 0 ? 0 : carve_tiles(layer, m, nullptr, nullptr);
}

#ifdef GEARSHIFT_CUDA_TARGETS

// Rows [m0, m0 + rows) of x against one part, whose rows begin at `first`.
bool multiply_tiles(const RunArgs& args, const TileScratch& scratch, const cuda::Operand& x, size_t part, int64_t first,
                    int64_t m0, int64_t rows) {
  const LayerSpec& layer = *args.weights->spec;
  const ScaledTiles at = scaled_tiles_of(layer);
  const int64_t n = args.weights->parts[part].n;
  cuda::Product p;
  p.a = args.packed + first * at.row_bytes;
  p.b = x.data;
  p.n = n;
  p.m = rows;
  p.k = p.a_stride = p.b_stride = at.columns;
  const bool four_bits = layer.scheme.weight.format == Format::e2m1;
  p.operand = four_bits ? DType::f4 : DType::f8_e4m3;
  p.scales = four_bits ? cuda::ProductScales::vec16 : cuda::ProductScales::vec32;
  p.a_scales = args.packed + at.scales + scale_tiles_of_part(layer, part);
  p.b_scales = x.scale_bytes;
  p.d = scratch.sums;
  p.d_stride = n;
  p.out = DType::f32;
  p.workspace = scratch.library;
  p.workspace_bytes = cuda::cublaslt_workspace_bytes;
  p.stream = args.stream;
  if (!cuda::multiply(p)) return false;
  const int64_t column = output_column(*args.weights, part, 0);
  cuda::FinishSums finish;
  finish.sums = scratch.sums;
  finish.sums_stride = n;
  finish.rows = rows;
  finish.columns = n;
  finish.alpha = static_cast<float>(x.factor);
  finish.row_factor = reinterpret_cast<const float*>(args.packed + at.factors) + first;
  if (at.bias >= 0) finish.bias = reinterpret_cast<const float*>(args.packed + at.bias) + first;
  finish.y = args.y.data;
  finish.dtype = args.y.dtype;
  finish.y_stride = args.y.stride;
  finish.first_column = m0 * args.y.stride + column;
  finish.column_step = n > 1 ? output_column(*args.weights, part, 1) - column : 1;
  return cuda::finish_sums(finish, args.stream);
}

void run_tiles(const RunArgs& args) {
  const LayerWeights& weights = *args.weights;
  const int64_t m = args.x.rows;
  if (m == 0) return;
  TileScratch scratch;
  carve_tiles(*weights.spec, m, args.workspace.data(), &scratch);
  const cuda::OperandNeeds needs = tile_needs(*weights.spec);
  const int64_t versions = activation_versions(*weights.spec, ActivationUse::as_checkpoint);
  for (int64_t m0 = 0; m0 < m; m0 += kMostScaledRows) {
    const int64_t rows = std::min(kMostScaledRows, m - m0);
    int64_t first = 0;
    cuda::Operand x;
    for (size_t part = 0; part < weights.parts.size(); ++part) {
      // One copy of x at a time: it is made anew where this part reads another version than the one before.
      const bool anew =
          part == 0 || activation_version(weights, part, versions) != activation_version(weights, part - 1, versions);
      if ((anew && !cuda::make_operand(args, needs, part, m0, rows, nullptr, scratch.operand, x)) ||
          !multiply_tiles(args, scratch, x, part, first, m0, rows))
        return cuda::failed(args);
      first += weights.parts[part].n;
    }
  }
}

constexpr void (*kRunTiles)(const RunArgs&) = run_tiles;

#else

constexpr void (*kRunTiles)(const RunArgs&) = nullptr;

#endif

}  // namespace

Kernel make_cuda_block_scaled(std::string_view name, Format format) {
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "cublaslt";
  kernel.platform = Platform::cuda;
  kernel.layout = &scaled_tiles;
  Contract& contract = kernel.contract;
  contract.archs = {"sm_100", "sm_103", "sm_110", "sm_120", "sm_121"};
  contract.libraries = {"cublaslt"};
  contract.targets = cuda::code_targets();
  contract.dtypes = {DType::bf16, DType::f16};
  contract.weight_formats = {format};
  contract.activation_formats = {format};
  contract.groupings = {Grouping::Kind::group};
  contract.groups = {format == Format::e2m1 ? 16 : 32};
  contract.activation_groups = contract.groups;
  contract.scale_dtypes = {format == Format::e2m1 ? DType::f8_e4m3 : DType::f8_e8m0};
  contract.n.multiple = 32;
  contract.k.multiple = 32;
  contract.zero_points = contract.act_order = contract.pre_scale = contract.partial_groups = false;
  contract.capture_safe = true;
  kernel.bound_u = 0x1p-23;
  kernel.bound_product = 0x1p-12;  // as of other narrow products: tensor cores keep fewer bits than fp32 between sums
  kernel.workspace_bytes = tile_workspace;
  kernel.run = kRunTiles;
  kernel.formula = "y = sum_g sx_g sw_g (x . W)_g / globals + bias, codes by codes, cuBLASLt";
  return kernel;
}

}  // namespace gearshift
