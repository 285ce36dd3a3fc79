#include "kernel/cuda/emulation.h"

#include <algorithm>
#include <array>

#include "base/math.h"
#include "device/cublaslt.h"
#include "device/cuda.h"
#include "kernel/cuda/bound_run.h"
#include "kernel/cuda/failure.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/stage/panel.h"
#include "kernel/layout/code_rows.h"
#include "kernel/layout/int4_rows16_mma.h"
#include "kernel/layout/mxfp4_rows16_mma.h"
#include "kernel/layout/nvfp4_rows16_mma.h"
#include "kernel/layout/rows16.h"
#include "kernel/output.h"
#include "kernel/reference/activation.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

using cuda::OperandNeeds;

// Rows of x at a time, and bytes of a panel: large enough to fill the device, small enough that a panel is still in the
// second-level cache when it is multiplied.
constexpr int64_t kRowsOfX = 8192;
constexpr int64_t kPanelBytes = int64_t{64} << 20;
// Parts of a layer that may each want x quantized in their own way; serving engines fuse at most four.
constexpr int64_t kMostVersions = 16;

DType element_for(DType activations) { return activations == DType::bf16 ? DType::bf16 : DType::f32; }
int64_t element_size(DType element) { return element == DType::f32 ? 4 : 2; }

struct Geometry {
  DType element = DType::bf16;
  int64_t columns = 0;  // of a row of the panel, and of a copy of x
  int64_t panel_rows = 0;
  int64_t chunk = 0;  // rows of x
};
Geometry geometry_of(const LayerSpec& layer, DType element, int64_t m) {
  Geometry g;
  g.element = element;
  g.columns = units_along(layer.k) * kUnitColumns;
  const int64_t fitting = kPanelBytes / (g.columns * element_size(element));
  g.panel_rows = std::clamp<int64_t>(fitting / 256 * 256, 256, ceil_div(layer.n, 256) * 256);
  g.chunk = std::min(m, kRowsOfX);
  return g;
}

struct Scratch {
  uint8_t* library = nullptr;  // of cuBLASLt
  uint8_t* panel = nullptr;
  float* sums = nullptr;        // [chunk, panel rows]
  uint8_t* operands = nullptr;  // [versions] of operand_bytes
  int64_t operand_stride = 0;
};
int64_t carve(const LayerSpec& layer, ActivationUse use, const Geometry& g, uint8_t* base, Scratch* out) {
  Carver carver(base);
  Scratch s;
  s.library = carver.take_aligned<uint8_t>(cuda::cublaslt_workspace_bytes, cuda::cublaslt_alignment);
  s.panel = carver.take<uint8_t>(g.panel_rows * g.columns * element_size(g.element));
  s.sums = carver.take<float>(g.chunk * g.panel_rows);
  s.operand_stride = cuda::operand_bytes({use, g.element, g.columns}, g.chunk);
  s.operands = carver.take<uint8_t>(activation_versions(layer, use) * s.operand_stride);
  if (out != nullptr) *out = s;
  return carver.used();
}

// For the wider element: the activations' type is not known here.
int64_t emulation_workspace(const LayerSpec& layer, ActivationUse use, int64_t m) {
  if (m == 0) return 0;
  return std::max(carve(layer, use, geometry_of(layer, DType::bf16, m), nullptr, nullptr),
                  carve(layer, use, geometry_of(layer, DType::f32, m), nullptr, nullptr));
}

#ifdef GEARSHIFT_CUDA_TARGETS

// What codes of a whole row are multiplied by: its results, exactly, or its values, which are rounded to bf16 then and
// save a pass over the results.
enum class RowFactors : uint8_t { none, in_values, in_results };

// One part of a layer, and how its rows are read from the packed bytes.
class PackedPart {
 public:
  PackedPart(const RunArgs& args, const Layout& layout, bool exact_rows, size_t part, int64_t first_row,
             int64_t first_slab)
      : args_(args),
        layer_(*args.weights->spec),
        layout_(layout),
        part_(part),
        first_row_(first_row),
        first_slab_(first_slab) {
    const StoredWeights stored(*args.weights, part);
    alpha_ = stored.factor();
    if (&layout == &code_rows) {
      rows_ = code_rows_of(layer_);
      if (!layer_.scheme.quantized || rows_.scales >= 0) return;
      if (layer_.scheme.weight.grouping.kind == Grouping::Kind::tensor) {
        alpha_ *= stored.scale(0, 0);
        return;
      }
      row_factors_ = exact_rows ? RowFactors::in_results : RowFactors::in_values;
      alpha_ = 1;
      return;
    }
    if (&layout == &nvfp4_rows16_mma) {
      unit_bytes_ = kNvfp4UnitBytes;
      alpha_ *= kNvfp4Leftover;
    } else if (&layout == &mxfp4_rows16_mma) {
      unit_bytes_ = kMxfp4UnitBytes;
    } else {
      unit_bytes_ = int4_unit_bytes(layer_);
    }
  }

  // What results of the whole part are multiplied by, besides row_factor.
  double alpha() const { return alpha_; }
  const float* row_factor(int64_t r0) const { return row_factors_ == RowFactors::in_results ? factors(r0) : nullptr; }
  const float* bias(int64_t r0) const {
    if (!layer_.bias) return nullptr;
    if (unit_bytes_ == 0) return reinterpret_cast<const float*>(args_.packed + rows_.bias) + first_row_ + r0;
    return reinterpret_cast<const float*>(record(r0) + 1);
  }
  int64_t bias_stride() const { return unit_bytes_ == 0 ? 1 : 4; }
  const float* pre_scale() const {
    if (unit_bytes_ != 0 || rows_.pre_scale < 0) return nullptr;
    return reinterpret_cast<const float*>(args_.packed + rows_.pre_scale) + static_cast<int64_t>(part_) * layer_.k;
  }
  // In which order x meets the columns of the weights; nullptr: their own.
  const int32_t* gather() const {
    const int64_t order_at = &layout_ == &int4_rows16_mma ? int4_column_order_at(layer_) : -1;
    if (order_at < 0) return nullptr;
    return reinterpret_cast<const int32_t*>(args_.packed + order_at) + static_cast<int64_t>(part_) * layer_.k;
  }
  // Stored floats of the right type need no panel: where they begin, and elements from row to row.
  const void* as_it_is(DType element, int64_t r0, int64_t* stride) const {
    if (unit_bytes_ != 0 || layer_.scheme.quantized || element != DType::bf16 || code() != cuda::RowCode::bf16)
      return nullptr;
    *stride = rows_.row_bytes / 2;
    return args_.packed + (first_row_ + r0) * rows_.row_bytes;
  }
  bool expand(int64_t r0, int64_t rows, const Geometry& g, uint8_t* panel) const {
    const bool wide = g.element == DType::f32;
    if (unit_bytes_ != 0) {
      cuda::UnitPanel p;
      p.format = &layout_ == &nvfp4_rows16_mma   ? cuda::UnitFormat::nvfp4
                 : &layout_ == &mxfp4_rows16_mma ? cuda::UnitFormat::mxfp4
                                                 : cuda::UnitFormat::int4;
      if (p.format == cuda::UnitFormat::int4) {
        p.groups = static_cast<int>(int4_groups_in_unit(layer_));
        p.zeros = !layer_.scheme.weight.symmetric;
        p.half_scales = args_.weights->parts[part_].scale_dtype == DType::f16;
      }
      p.units_along_k = units_along(layer_.k);
      p.units = args_.packed + (first_slab_ + r0 / kUnitRows) * p.units_along_k * unit_bytes_;
      p.records = record(r0);
      p.slabs = ceil_div(rows, kUnitRows);
      p.panel = panel;
      p.wide = wide;
      return cuda::expand_units(p, args_.stream);
    }
    cuda::CodeRowsPanel p;
    p.codes = args_.packed + (first_row_ + r0) * rows_.row_bytes;
    p.row_bytes = rows_.row_bytes;
    p.code = code();
    if (rows_.scales >= 0) p.scales = args_.packed + rows_.scales + (first_row_ + r0) * rows_.scale_row_bytes;
    p.scale_row_bytes = rows_.scale_row_bytes;
    p.exponents = rows_.exponents;
    if (rows_.zeros >= 0)
      p.zeros = reinterpret_cast<const int16_t*>(args_.packed + rows_.zeros) + (first_row_ + r0) * rows_.groups;
    if (rows_.index >= 0)
      p.index = reinterpret_cast<const int32_t*>(args_.packed + rows_.index) + static_cast<int64_t>(part_) * layer_.k;
    if (row_factors_ == RowFactors::in_values) {
      p.scales = reinterpret_cast<const uint8_t*>(factors(r0));
      p.scale_row_bytes = sizeof(float);
    }
    p.groups = rows_.groups;
    p.group_columns = rows_.groups > 1 ? layer_.scheme.weight.grouping.cols : 0;
    p.rows = rows;
    p.k = layer_.k;
    p.panel = panel;
    p.columns = g.columns;
    p.wide = wide;
    return cuda::expand_code_rows(p, args_.stream);
  }

 private:
  const uint32_t* record(int64_t r0) const {
    return reinterpret_cast<const uint32_t*>(args_.packed + rows16_records_at(layer_, unit_bytes_)) +
           (first_slab_ * kUnitRows + r0) * 4;
  }
  const float* factors(int64_t r0) const {
    return reinterpret_cast<const float*>(args_.packed + rows_.factors) + first_row_ + r0;
  }
  cuda::RowCode code() const {
    if (rows_.element_bytes == 4) return cuda::RowCode::f32;
    switch (layer_.scheme.quantized ? layer_.scheme.weight.format : Format::float_) {
      case Format::float_:
        return args_.weights->parts[part_].weight_dtype == DType::f16 ? cuda::RowCode::f16 : cuda::RowCode::bf16;
      case Format::e4m3:
        return cuda::RowCode::e4m3;
      case Format::e5m2:
        return cuda::RowCode::e5m2;
      case Format::e2m1:
        return cuda::RowCode::e2m1;
      case Format::e2m3:
        return cuda::RowCode::e2m3;
      case Format::e3m2:
        return cuda::RowCode::e3m2;
      default:
        return cuda::RowCode::integer;
    }
  }

  const RunArgs& args_;
  const LayerSpec& layer_;
  const Layout& layout_;
  size_t part_;
  int64_t first_row_, first_slab_;
  int64_t unit_bytes_ = 0;  // 0: code_rows
  CodeRows rows_;
  double alpha_ = 1;
  RowFactors row_factors_ = RowFactors::none;
};

// Rows [m0, m0 + rows) of x against one part.
bool multiply_part(const RunArgs& args, const PackedPart& packed, const Geometry& g, const Scratch& scratch,
                   const cuda::Operand& x, size_t part, int64_t m0, int64_t rows) {
  const LayerSpec& layer = *args.weights->spec;
  const int64_t n = args.weights->parts[part].n;
  const int64_t first = output_column(*args.weights, part, 0);
  const int64_t step = n > 1 ? output_column(*args.weights, part, 1) - first : 1;
  const auto alpha = static_cast<float>(packed.alpha() * x.factor);
  constexpr int64_t y_size = 2;
  for (int64_t r0 = 0; r0 < n; r0 += g.panel_rows) {
    const int64_t some = std::min(g.panel_rows, n - r0);
    cuda::Product product;
    product.a = packed.as_it_is(g.element, r0, &product.a_stride);
    if (product.a == nullptr) {
      if (!packed.expand(r0, some, g, scratch.panel)) return false;
      product.a = scratch.panel;
      product.a_stride = g.columns;
    }
    product.b = x.data;
    product.b_stride = x.stride;
    product.n = some;
    // A copy of x has zeros past K as the panel has, and cuBLASLt likes round numbers.
    product.k = x.padded ? std::min(product.a_stride, x.stride) : layer.k;
    product.m = rows;
    product.operand = g.element;
    product.workspace = scratch.library;
    product.workspace_bytes = cuda::cublaslt_workspace_bytes;
    product.stream = args.stream;
    auto* y = static_cast<uint8_t*>(args.y.data) + (m0 * args.y.stride + first + r0 * step) * y_size;
    const bool straight = g.element == DType::bf16 && x.token_factor == nullptr && packed.row_factor(r0) == nullptr &&
                          packed.bias(r0) == nullptr && step == 1 && reinterpret_cast<uintptr_t>(y) % 16 == 0 &&
                          args.y.stride * y_size % 16 == 0;
    if (straight) {
      product.d = y;
      product.d_stride = args.y.stride;
      product.out = args.y.dtype;
      product.alpha = alpha;
      if (cuda::multiply(product)) continue;
    }
    product.d = scratch.sums;
    product.d_stride = g.panel_rows;
    product.out = DType::f32;
    product.alpha = 1;
    if (!cuda::multiply(product)) return false;
    cuda::FinishSums finish;
    finish.sums = scratch.sums;
    finish.sums_stride = g.panel_rows;
    finish.rows = rows;
    finish.columns = some;
    finish.alpha = alpha;
    finish.token_factor = x.token_factor;
    finish.row_factor = packed.row_factor(r0);
    finish.bias = packed.bias(r0);
    finish.bias_stride = packed.bias_stride();
    finish.y = args.y.data;
    finish.dtype = args.y.dtype;
    finish.y_stride = args.y.stride;
    finish.first_column = m0 * args.y.stride + first + r0 * step;
    finish.column_step = step;
    if (!cuda::finish_sums(finish, args.stream)) return false;
  }
  return true;
}

void run_emulation(const RunArgs& args, ActivationUse use, const Layout& layout) {
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  const int64_t m = args.x.rows;
  if (m == 0) return;
  const Geometry g = geometry_of(layer, element_for(args.x.dtype), m);
  Scratch scratch;
  carve(layer, use, g, args.workspace.data(), &scratch);
  const int64_t versions = activation_versions(layer, use);
  const OperandNeeds needs{use, g.element, g.columns};
  // Where activations are codes the checkpoint's products are exact; what is wider than bf16 is finished anyway.
  const bool exact_rows = quantizes(layer.scheme, use) || g.element != DType::bf16;
  std::array<cuda::Operand, kMostVersions> operands;
  if (versions > kMostVersions) return cuda::failed(args);
  for (int64_t m0 = 0; m0 < m; m0 += g.chunk) {
    const int64_t rows = std::min(g.chunk, m - m0);
    int64_t first_row = 0, first_slab = 0;
    for (size_t part = 0; part < weights.parts.size(); ++part) {
      const PackedPart packed(args, layout, exact_rows, part, first_row, first_slab);
      const size_t version = activation_version(weights, part, versions);
      if (version == part || (versions == 1 && part == 0) || packed.gather() != nullptr) {
        if (!cuda::make_operand(args, needs, part, m0, rows, packed.pre_scale(),
                                scratch.operands + static_cast<int64_t>(version) * scratch.operand_stride,
                                operands[version], packed.gather()))
          return cuda::failed(args);
      }
      if (!multiply_part(args, packed, g, scratch, operands[version], part, m0, rows)) return cuda::failed(args);
      first_row += weights.parts[part].n;
      first_slab += slabs_of_part(weights.parts[part].n);
    }
  }
}

cuda::Run run_of(ActivationUse use, const Layout& layout) {
  return cuda::bound_run<run_emulation, &nvfp4_rows16_mma, &mxfp4_rows16_mma, &int4_rows16_mma, &code_rows>(use,
                                                                                                            layout);
}

#else

cuda::Run run_of(ActivationUse, const Layout&) { return nullptr; }

#endif

}  // namespace

std::vector<std::string_view> cuda_archs() {
  return {"sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"};
}

Kernel make_cuda_emulation(std::string_view name, ActivationUse use, const Layout& layout) {
  const bool as_checkpoint = use == ActivationUse::as_checkpoint;
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "emulation";
  kernel.platform = Platform::cuda;
  kernel.activation = use;
  kernel.layout = &layout;
  kernel.contract.archs = cuda_archs();
  kernel.contract.libraries = {"cublaslt"};
  kernel.contract.dtypes = {DType::bf16, DType::f16};
  kernel.contract.capture_safe = true;
  kernel.contract.verified = {"sm_90"};
  kernel.contract.activation_groups = {16, 32, 64, 128};  // groups of neighbouring lanes (stage/prepare_x.cu)
  kernel.contract.targets = cuda::code_targets();
  kernel.bound_u = 0x1p-23;  // tensor cores add with a little less than fp32
  kernel.workspace_bytes = as_checkpoint
                               ? [](const LayerSpec& layer, int64_t m,
                                    int) { return emulation_workspace(layer, ActivationUse::as_checkpoint, m); }
                               : [](const LayerSpec& layer, int64_t m, int) {
                                   return emulation_workspace(layer, ActivationUse::float16, m);
                                 };
  kernel.run = run_of(use, layout);
  kernel.formula = as_checkpoint ? "y = quantize(x) * dequantize(W)^T + bias, cuBLASLt, fp32 sums"
                                 : "y = x * dequantize(W)^T + bias, cuBLASLt, fp32 sums";
  return kernel;
}

}  // namespace gearshift
