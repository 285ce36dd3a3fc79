#include "kernel/cpu/emulation.h"

#include <omp.h>

#include <algorithm>

#include "kernel/cpu/isa.h"
#include "kernel/cpu/multiply.h"
#include "kernel/cpu/team.h"
#include "kernel/output.h"
#include "kernel/parts.h"
#include "kernel/reference/activation.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

// Rows of x that share one dequantised panel: enough to hide its cost, few enough to stay in the last-level cache.
constexpr int64_t kChunk = 256;
// A panel of 48 rows x 512 columns of fp32 takes 96 KB of second-level cache; 48 is a multiple of both tile widths.
constexpr int64_t kPanelRows = 48;
constexpr int64_t kPanelColumns = 512;

int64_t padded(int64_t k) { return (k + kMultiplyStep - 1) / kMultiplyStep * kMultiplyStep; }

struct Scratch {
  float* x;             // [versions][chunk][padded K]: codes times group scales
  double* factor;       // [versions][chunk]: what a row's results are multiplied by
  float* scales;        // [threads][K]
  float* panel;         // [threads][kPanelRows][kPanelColumns]
  float* acc;           // [threads][chunk][kPanelRows]
  float* tensor_scale;  // [versions]
};

int64_t carve(const LayerSpec& layer, ActivationUse use, int64_t m, int threads, uint8_t* base, Scratch* scratch) {
  if (m == 0) return 0;
  const int64_t versions = activation_versions(layer, use);
  const int64_t chunk = std::min(m, kChunk);
  Carver carver(base);
  Scratch s{};
  s.x = carver.take<float>(versions * chunk * padded(layer.k));
  s.factor = carver.take<double>(versions * chunk);
  s.scales = carver.take<float>(threads * layer.k);
  s.panel = carver.take<float>(threads * kPanelRows * kPanelColumns);
  s.acc = carver.take<float>(threads * chunk * kPanelRows);
  s.tensor_scale = carver.take<float>(versions);
  if (scratch != nullptr) *scratch = s;
  return carver.used();
}

// codes * scale for `rows` rows of a part and columns [k0, k0 + count); a scale that holds for whole rows is left out.
void decode_panel(const StoredWeights& stored, int64_t r0, int64_t rows, int64_t k0, int64_t count, float* panel) {
  for (int64_t r = 0; r < rows; ++r) {
    float* out = panel + r * kPanelColumns;
    stored.codes(r0 + r, k0, count, out);
    std::fill(out + count, out + padded(count), 0.0f);
    if (stored.one_scale_a_row()) continue;
    for (int64_t i = 0; i < count;) {
      const int64_t run = stored.run_of_group(k0 + i, count - i);
      const float scale = stored.scale(r0 + r, stored.group_of(k0 + i));
      for (const int64_t end = i + run; i < end; ++i) out[i] *= scale;
    }
  }
}

struct Call {
  const RunArgs& args;
  ActivationUse use;
  Scratch scratch;
  int64_t versions;
  int64_t chunk;  // rows that scratch arrays are made for
};

// Row m0 + m of every version of x; spread over threads by row.
void load_chunk(const Call& call, int64_t m0, int64_t rows, float* scales) {
  const LayerWeights& weights = *call.args.weights;
  const Scheme& scheme = weights.spec->scheme;
  const int64_t k = weights.spec->k;
  const ActivationGroups groups = activation_groups(scheme, k, call.use);
  for (int64_t version = 0; version < call.versions; ++version) {
    const auto part = static_cast<size_t>(version);
    if (activation_version(weights, part, call.versions) != part) continue;
#pragma omp for schedule(static) nowait
    for (int64_t m = 0; m < rows; ++m) {
      float* x = call.scratch.x + (version * call.chunk + m) * padded(k);
      load_row(call.args.x, m0 + m, 0, k, weights.parts[part], x);
      call.scratch.factor[version * call.chunk + m] =
          quantize_row(scheme, weights.parts[part], call.use, call.scratch.tensor_scale[version], x, k, scales);
      if (groups.count > 1 || scales[0] != 1) {
        for (int64_t i = 0; i < k; ++i) x[i] *= scales[i / groups.group];
      }
      std::fill(x + k, x + padded(k), 0.0f);
    }
  }
}

// All rows of the chunk against panel `panel` of a part.
void multiply_panel(const Call& call, Multiply multiply, const StoredWeights& stored, size_t part, int64_t r0,
                    int64_t m0, int64_t rows, int64_t thread) {
  const LayerWeights& weights = *call.args.weights;
  const int64_t k = weights.spec->k;
  const auto version = static_cast<int64_t>(activation_version(weights, part, call.versions));
  const float* x = call.scratch.x + version * call.chunk * padded(k);
  float* panel = call.scratch.panel + thread * kPanelRows * kPanelColumns;
  float* acc = call.scratch.acc + thread * call.chunk * kPanelRows;
  const int64_t n = std::min(kPanelRows, stored.n() - r0);
  std::fill(acc, acc + rows * kPanelRows, 0.0f);
  for (int64_t k0 = 0; k0 < k; k0 += kPanelColumns) {
    const int64_t count = std::min(kPanelColumns, k - k0);
    decode_panel(stored, r0, n, k0, count, panel);
    multiply({x + k0, padded(k), rows, panel, kPanelColumns, n, padded(count), acc, kPanelRows});
  }
  for (int64_t r = 0; r < n; ++r) {
    const double scale = stored.factor() * (stored.one_scale_a_row() ? stored.scale(r0 + r, 0) : 1.0f);
    const double bias = bias_value(weights.parts[part], r0 + r);
    const int64_t column = output_column(weights, part, r0 + r);
    for (int64_t m = 0; m < rows; ++m) {
      const double factor = call.scratch.factor[version * call.chunk + m] * scale;
      store(call.args.y, m0 + m, column, acc[m * kPanelRows + r] * factor + bias);
    }
  }
}

void run(const RunArgs& args, ActivationUse use) {
  const int64_t m = args.x.rows;
  if (m == 0) return;
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  Call call{args, use, {}, activation_versions(layer, use), std::min(m, kChunk)};
  carve(layer, use, m, args.threads, args.workspace.data(), &call.scratch);
  const Multiply multiply = multiply_for(active_isa());
  for (int64_t version = 0; version < call.versions; ++version) {
    call.scratch.tensor_scale[version] =
        dynamic_tensor_scale(layer.scheme, args.x, weights.parts[static_cast<size_t>(version)], use, call.scratch.x);
  }
#pragma omp parallel num_threads(team_size(args.threads))
  {
    const int64_t thread = omp_get_thread_num();
    for (int64_t m0 = 0; m0 < m; m0 += kChunk) {
      const int64_t rows = std::min(kChunk, m - m0);
      load_chunk(call, m0, rows, call.scratch.scales + thread * layer.k);
#pragma omp barrier
      for (size_t part = 0; part < weights.parts.size(); ++part) {
        const StoredWeights stored(weights, part);
        const int64_t panels = (stored.n() + kPanelRows - 1) / kPanelRows;
#pragma omp for schedule(static) nowait
        for (int64_t panel = 0; panel < panels; ++panel) {
          multiply_panel(call, multiply, stored, part, panel * kPanelRows, m0, rows, thread);
        }
      }
#pragma omp barrier
    }
  }
}

void run_as_checkpoint(const RunArgs& args) { run(args, ActivationUse::as_checkpoint); }
void run_float16(const RunArgs& args) { run(args, ActivationUse::float16); }

int64_t workspace_as_checkpoint(const LayerSpec& layer, int64_t m, int threads) {
  return carve(layer, ActivationUse::as_checkpoint, m, threads, nullptr, nullptr);
}
int64_t workspace_float16(const LayerSpec& layer, int64_t m, int threads) {
  return carve(layer, ActivationUse::float16, m, threads, nullptr, nullptr);
}

}  // namespace

Kernel make_emulation(std::string_view name, ActivationUse use) {
  const bool as_checkpoint = use == ActivationUse::as_checkpoint;
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "emulation";
  kernel.activation = use;
  kernel.contract.dtypes = {DType::f32, DType::f16, DType::bf16};
  kernel.contract.shard_offset = true;
  kernel.contract.bits_same_for_any_m = true;
  kernel.contract.verified = verified_processors();
  kernel.workspace_bytes = as_checkpoint ? workspace_as_checkpoint : workspace_float16;
  kernel.run = as_checkpoint ? run_as_checkpoint : run_float16;
  kernel.formula =
      as_checkpoint ? "y = quantize(x) * dequantize(W)^T + bias, fp32" : "y = x * dequantize(W)^T + bias, fp32";
  return kernel;
}

}  // namespace gearshift
