// y[m,n] = sum over k of x[m,k] * w[n,k], plus bias[n]: float64, k in order, one accumulator.
#include "kernel/reference/reference.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "kernel/output.h"
#include "kernel/parts.h"
#include "kernel/reference/activation.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

// Rows of x that one pass over the weights serves.
constexpr int64_t kRows = 32;
// Rows whose sums are carried side by side.
constexpr int64_t kLanes = 8;

// Where a pass keeps things; every array in the caller's memory.
struct Scratch {
  double* x;        // [versions][K][kRows], zero where there is no row
  float* loaded;    // [K] and its scales
  float* scales;    // [K]
  double* weights;  // [threads][K]
  float* codes;     // [threads][K]
  double* y;        // [kRows][N]
};

Scratch carve(Carver& carver, int64_t n, int64_t k, int64_t versions, int threads) {
  Scratch scratch{};
  scratch.x = carver.take<double>(versions * k * kRows);
  scratch.loaded = carver.take<float>(k);
  scratch.scales = carver.take<float>(k);
  scratch.weights = carver.take<double>(threads * k);
  scratch.codes = carver.take<float>(threads * k);
  scratch.y = carver.take<double>(kRows * n);
  return scratch;
}

void load_x(const LayerWeights& weights, const PartWeights& part, const ConstMatrix& x, std::span<const int64_t> rows,
            ActivationUse use, const Scratch& scratch, double* out) {
  const Scheme& scheme = weights.spec->scheme;
  const int64_t k = weights.spec->k;
  const ActivationGroups groups = activation_groups(scheme, k, use);
  const float tensor_scale = dynamic_tensor_scale(scheme, x, part, use, scratch.loaded);
  std::fill(out, out + k * kRows, 0.0);
  for (size_t r = 0; r < rows.size(); ++r) {
    load_row(x, rows[r], 0, k, part, scratch.loaded);
    const double factor = quantize_row(scheme, part, use, tensor_scale, scratch.loaded, k, scratch.scales);
    for (int64_t i = 0; i < k; ++i) {
      out[i * kRows + static_cast<int64_t>(r)] =
          static_cast<double>(scratch.loaded[i]) * scratch.scales[i / groups.group] * factor;
    }
  }
}

void multiply(const double* x, const double* w, int64_t k, double* sum, double* magnitude) {
  double s[kLanes] = {};
  double a[kLanes] = {};
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double product = x[i * kRows + lane] * w[i];
      s[lane] += product;
      a[lane] += std::fabs(product);
    }
  }
  std::copy(s, s + kLanes, sum);
  std::copy(a, a + kLanes, magnitude);
}

// At most kRows rows, all columns.
void pass(const LayerWeights& weights, const ConstMatrix& x, std::span<const int64_t> rows, ActivationUse use,
          double* y, double* magnitude, const Scratch& scratch, [[maybe_unused]] int threads) {
  const int64_t n = weights.spec->n;
  const int64_t k = weights.spec->k;
  const int64_t versions = activation_versions(*weights.spec, use);
  for (size_t p = 0; p < weights.parts.size(); ++p) {
    const size_t version = activation_version(weights, p, versions);
    double* part_x = scratch.x + static_cast<int64_t>(version) * k * kRows;
    if (version == p) {
      load_x(weights, weights.parts[p], x, rows, use, scratch, part_x);
    }
    const StoredWeights stored(weights, p);
#pragma omp parallel num_threads(threads)
    {
      const int64_t thread = omp_get_thread_num();
      double* w = scratch.weights + thread * k;
#pragma omp for schedule(static)
      for (int64_t r = 0; r < stored.n(); ++r) {
        decode_row(stored, r, scratch.codes + thread * k, w);
        const int64_t column = output_column(weights, p, r);
        const double bias = bias_value(weights.parts[p], r);
        for (int64_t first = 0; first < static_cast<int64_t>(rows.size()); first += kLanes) {
          double sum[kLanes], absolute[kLanes];
          multiply(part_x + first, w, k, sum, absolute);
          for (int64_t m = first; m < std::min<int64_t>(first + kLanes, static_cast<int64_t>(rows.size())); ++m) {
            y[m * n + column] = sum[m - first] + bias;
            if (magnitude != nullptr) magnitude[m * n + column] = absolute[m - first];
          }
        }
      }
    }
  }
}

int64_t reference_workspace(const LayerSpec& layer, ActivationUse use, int threads, uint8_t* base, Scratch* scratch) {
  Carver carver(base);
  const Scratch carved = carve(carver, layer.n, layer.k, activation_versions(layer, use), threads);
  if (scratch != nullptr) *scratch = carved;
  return carver.used();
}

void run_reference(const RunArgs& args) {
  const LayerWeights& weights = *args.weights;
  Scratch scratch;
  reference_workspace(*weights.spec, ActivationUse::as_checkpoint, args.threads, args.workspace.data(), &scratch);
  for (int64_t m0 = 0; m0 < args.x.rows; m0 += kRows) {
    const int64_t count = std::min(kRows, args.x.rows - m0);
    int64_t rows[kRows];
    for (int64_t i = 0; i < count; ++i) rows[i] = m0 + i;
    pass(weights, args.x, std::span(rows, static_cast<size_t>(count)), ActivationUse::as_checkpoint, scratch.y, nullptr,
         scratch, args.threads);
    for (int64_t m = 0; m < count; ++m) {
      for (int64_t n = 0; n < args.y.cols; ++n) store(args.y, m0 + m, n, scratch.y[m * weights.spec->n + n]);
    }
  }
}

Kernel make_reference() {
  Kernel kernel;
  kernel.name = "reference";
  kernel.backend = "reference";
  kernel.families.assign(all_families().begin(), all_families().end());
  kernel.accumulator = "fp64";
  kernel.contract.dtypes = {DType::f32, DType::f16, DType::bf16};
  kernel.contract.shard_offset = true;
  kernel.contract.bits_same_for_any_m = true;
  kernel.contract.verified = {"cpu"};
  kernel.bound_c = 4;
  kernel.bound_u = 0x1p-53;
  kernel.workspace_bytes = [](const LayerSpec& layer, int64_t m, int threads) -> int64_t {
    return m == 0 ? 0 : reference_workspace(layer, ActivationUse::as_checkpoint, threads, nullptr, nullptr);
  };
  kernel.run = run_reference;
  kernel.formula = "y = quantize(x) * dequantize(W)^T + bias, float64, k in order";
  return kernel;
}

}  // namespace

const Kernel reference_kernel = make_reference();

void reference_rows(const LayerWeights& weights, const ConstMatrix& x, std::span<const int64_t> rows, ActivationUse use,
                    double* y, double* magnitude, int threads) {
  const LayerSpec& layer = *weights.spec;
  std::vector<uint8_t> memory(static_cast<size_t>(reference_workspace(layer, use, threads, nullptr, nullptr)) + 64);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  Scratch scratch;
  reference_workspace(layer, use, threads, memory.data() + (64 - address % 64) % 64, &scratch);
  for (size_t first = 0; first < rows.size(); first += static_cast<size_t>(kRows)) {
    const auto some = rows.subspan(first, std::min(rows.size() - first, static_cast<size_t>(kRows)));
    const int64_t offset = static_cast<int64_t>(first) * layer.n;
    pass(weights, x, some, use, y + offset, magnitude == nullptr ? nullptr : magnitude + offset, scratch, threads);
  }
}

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 0x1p-8;
    case DType::f16:
      return 0x1p-11;
    case DType::f32:
      return 0x1p-24;
    default:
      return 0x1p-53;
  }
}

namespace {

double smallest_subnormal(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 0x1p-133;
    case DType::f16:
      return 0x1p-24;
    case DType::f32:
      return 0x1p-149;
    default:
      return 0;
  }
}

// The smallest number that rounds to infinity.
double overflow(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 0x1.FFp127;
    case DType::f16:
      return 65520;
    default:
      return 0x1.FFFFFFp127;
  }
}

}  // namespace

double error_bound(const Kernel& kernel, int64_t k, double magnitude, double wanted, DType out) {
  const double rounding = unit_roundoff(out) * std::fabs(wanted);
  const double subnormal = wanted == 0 ? 0 : smallest_subnormal(out) / 2;
  if (magnitude == 0) return rounding + subnormal;
  const double accumulated =
      (kernel.bound_c * std::sqrt(static_cast<double>(k)) * kernel.bound_u + kernel.bound_product) * magnitude;
  return accumulated + rounding + smallest_subnormal(out) / 2 + 0x1p-126;
}

bool within_bound(const Kernel& kernel, int64_t k, double magnitude, double wanted, double y, DType out) {
  const double bound = error_bound(kernel, k, magnitude, wanted, out);
  if (std::isinf(y)) return std::fabs(wanted) + bound >= overflow(out) && (y > 0) == (wanted > 0);
  if (std::fabs(wanted) - bound >= overflow(out)) return false;
  return std::fabs(y - wanted) <= bound;  // false for NaN
}

}  // namespace gearshift
