// y[m,n] = (1/gx * 1/gw) * sum over groups g of Sx[m,g] * Sw[n,g] * sum over k in g of x4[m,k] * w4[n,k], plus bias[n]
//
// NVFP4 activations by the checkpoint's recipe, then integer dot products on packed weights. A kernel for few rows:
// weights are decoded in registers again for every four rows of x, and cost one pass over memory whatever M is.
#include <omp.h>

#include <algorithm>

#include "kernel/cpu/isa.h"
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/nvfp4_dot.h"
#include "kernel/layout/nvfp4_rows16_dot4.h"
#include "kernel/output.h"
#include "kernel/parts.h"
#include "kernel/reference/activation.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

// Rows of x quantized at a time: their groups stay in the second-level cache while panels stream past.
constexpr int64_t kChunk = 64;
// Columns quantized as one item of work, so that threads share a single row too.
constexpr int64_t kSegment = 4 * kDot4Columns;

int64_t blocks_of(int64_t k) { return (k + kDot4Columns - 1) / kDot4Columns; }
int64_t groups_of(int64_t k) { return blocks_of(k) * (kDot4Columns / kDot4Group); }

int64_t workspace_bytes(const LayerSpec& layer, int64_t m, int) {
  const int64_t rows = std::min(m, kChunk) * activation_versions(layer, ActivationUse::as_checkpoint);
  return rows * groups_of(layer.k) * static_cast<int64_t>(sizeof(DotGroup));
}

// Columns [k0, k0 + kSegment) of one row; groups past K become zero.
void quantize_segment(const RunArgs& args, const PartWeights& part, int64_t row, int64_t k0, QuantizeGroup quantize,
                      DotGroup* groups) {
  const int64_t k = args.weights->spec->k;
  const float global = nvfp4_input_global(*args.weights->spec->scheme.activation, part);
  float x[kSegment];
  const int64_t count = std::min(kSegment, k - k0);
  load_row(args.x, row, k0, count, part, x);
  for (int64_t i = 0; i < count; i += kDot4Group) quantize(x + i, global, groups + i / kDot4Group);
  for (int64_t g = count / kDot4Group; g < std::min(kSegment / kDot4Group, groups_of(k) - k0 / kDot4Group); ++g) {
    groups[g] = {{0, 0, 0, 0}, 0, 0};
  }
}

// All rows of a chunk against panel `panel` of a part.
void multiply_panel(const RunArgs& args, DotPanel dot, const uint8_t* packed, size_t part, int64_t panel,
                    const DotGroup* x, int64_t m0, int64_t rows) {
  const LayerWeights& weights = *args.weights;
  const int64_t k = weights.spec->k;
  const double factor =
      nvfp4_input_factor(*weights.spec->scheme.activation, weights.parts[part]) * StoredWeights(weights, part).factor();
  const int64_t r0 = panel * kDot4Rows;
  const int64_t n = std::min(kDot4Rows, weights.parts[part].n - r0);
  for (int64_t m = 0; m < rows; m += kDotRowsOfX) {
    const int64_t some = std::min(kDotRowsOfX, rows - m);
    const DotGroup* row[kDotRowsOfX];
    for (int64_t i = 0; i < some; ++i) row[i] = x + (m + i) * groups_of(k);
    float sum[kDotRowsOfX][16];
    dot(packed + panel * blocks_of(k) * kDot4BlockBytes, blocks_of(k), row, some, sum);
    for (int64_t r = 0; r < n; ++r) {
      const double bias = bias_value(weights.parts[part], r0 + r);
      const int64_t column = output_column(weights, part, r0 + r);
      for (int64_t i = 0; i < some; ++i) store(args.y, m0 + m + i, column, sum[i][r] * factor + bias);
    }
  }
}

void run(const RunArgs& args) {
  const LayerWeights& weights = *args.weights;
  const int64_t k = weights.spec->k;
  const int64_t m = args.x.rows;
  const int64_t chunk = std::min(m, kChunk);
  const int64_t versions = activation_versions(*weights.spec, ActivationUse::as_checkpoint);
  const int64_t segments = (k + kSegment - 1) / kSegment;
  const DotPieces pieces = dot_pieces_for(active_isa());
  auto* x = reinterpret_cast<DotGroup*>(args.workspace.data());
#pragma omp parallel num_threads(args.threads)
  for (int64_t m0 = 0; m0 < m; m0 += kChunk) {
    const int64_t rows = std::min(kChunk, m - m0);
    for (int64_t version = 0; version < versions; ++version) {
      const auto part = static_cast<size_t>(version);
      if (activation_version(weights, part, versions) != part) continue;
#pragma omp for schedule(static) nowait
      for (int64_t item = 0; item < rows * segments; ++item) {
        const int64_t row = item / segments;
        const int64_t k0 = item % segments * kSegment;
        quantize_segment(args, weights.parts[part], m0 + row, k0, pieces.quantize,
                         x + (version * chunk + row) * groups_of(k) + k0 / kDot4Group);
      }
    }
#pragma omp barrier
    const uint8_t* packed = args.packed;
    for (size_t part = 0; part < weights.parts.size(); ++part) {
      const auto version = static_cast<int64_t>(activation_version(weights, part, versions));
      const int64_t panels = (weights.parts[part].n + kDot4Rows - 1) / kDot4Rows;
#pragma omp for schedule(static) nowait
      for (int64_t panel = 0; panel < panels; ++panel) {
        multiply_panel(args, pieces.panel, packed, part, panel, x + version * chunk * groups_of(k), m0, rows);
      }
      packed += panels * blocks_of(k) * kDot4BlockBytes;
    }
#pragma omp barrier
  }
}

Kernel make() {
  Kernel kernel;
  kernel.name = "cpu_nvfp4_w4a4_dot";
  kernel.backend = "native";
  kernel.families = {Family::nvfp4_w4a4};
  kernel.layout = &nvfp4_rows16_dot4;
  Contract& contract = kernel.contract;
  contract.weight_formats = {Format::e2m1};
  contract.storages = {Storage::nibbles};
  contract.groupings = {Grouping::Kind::group};
  contract.groups = {kDot4Group};
  contract.scale_dtypes = {DType::f8_e4m3};
  contract.activation_formats = {Format::e2m1};
  contract.dtypes = {DType::f32, DType::f16, DType::bf16};
  contract.k.multiple = kDot4Group;
  contract.zero_points = contract.act_order = contract.partial_groups = false;
  contract.bits_same_for_any_m = true;
  contract.verified = verified_processors();
  kernel.workspace_bytes = workspace_bytes;
  kernel.run = run;
  kernel.formula = "y = (nvfp4(x) . W) * Sx * Sw / (gx * gw) + bias, int32 dots per group, fp32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_nvfp4_w4a4_dot = make();

}  // namespace gearshift
