#include "kernel/cuda/library_w8a8.h"

#include <algorithm>

#include "base/math.h"
#include "device/cublaslt.h"
#include "device/cuda.h"
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/failure.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/stage/panel.h"
#include "kernel/layout/code_rows.h"
#include "kernel/output.h"
#include "kernel/parts.h"
#include "kernel/reference/activation.h"

namespace gearshift {

namespace {

constexpr int64_t kBlockSide = 128;

}  // namespace

cuda::OperandNeeds code_needs(const LayerSpec& layer, CodeProduct product) {
  cuda::OperandNeeds needs;
  needs.element = DType::u8;
  needs.columns = code_rows_of(layer).row_bytes;
  if (product == CodeProduct::e4m3_block) {
    needs.group_scales = cuda::GroupScales::by_group;
    needs.group = kBlockSide;
  }
  return needs;
}

namespace {

constexpr int64_t kMostRows = 8192;  // of x at a time

// Products scaled by blocks take whole quads of rows.
int64_t rows_multiplied(CodeProduct product, int64_t rows) {
  return product == CodeProduct::e4m3_block ? ceil_div(rows, 4) * 4 : rows;
}

struct CodeScratch {
  uint8_t* library = nullptr;
  float* sums = nullptr;        // [rows][N]
  uint8_t* operands = nullptr;  // [versions]
  int64_t operand_stride = 0;
};
int64_t carve_codes(const LayerSpec& layer, CodeProduct product, int64_t m, uint8_t* base, CodeScratch* out) {
  const int64_t rows = rows_multiplied(product, std::min(m, kMostRows));
  Carver carver(base);
  CodeScratch s;
  s.library = carver.take_aligned<uint8_t>(cuda::cublaslt_workspace_bytes, cuda::cublaslt_alignment);
  s.sums = carver.take<float>(rows * layer.n);
  s.operand_stride = cuda::operand_bytes(code_needs(layer, product), rows);
  s.operands = carver.take<uint8_t>(activation_versions(layer, ActivationUse::as_checkpoint) * s.operand_stride);
  if (out != nullptr) *out = s;
  return carver.used();
}

int64_t code_workspace(const LayerSpec& layer, CodeProduct product, int64_t m) {
  return m == 0 ? 0 : carve_codes(layer, product, m, nullptr, nullptr);
}

#ifdef GEARSHIFT_CUDA_TARGETS

// Parts [first, last) of a layer, whose rows begin at first_row.
struct PartSpan {
  size_t first = 0, last = 0;
  int64_t first_row = 0, rows = 0;
};

class CodeMultiplier {
 public:
  CodeMultiplier(const RunArgs& args, CodeProduct product, const CodeScratch& scratch)
      : args_(args),
        layer_(*args.weights->spec),
        product_(product),
        scratch_(scratch),
        rows_(code_rows_of(layer_)),
        hopper_(cuda::limits().major == 9) {}

  // Rows [m0, m0 + rows) of x against parts that read the same version of it.
  bool multiply(const PartSpan& span, const cuda::Operand& x, int64_t m0, int64_t rows) const {
    if (product_ == CodeProduct::e4m3_block && !whole_blocks(span) && span.last - span.first > 1) {
      PartSpan part = span;
      for (part.first = span.first; part.first < span.last; ++part.first) {
        part.last = part.first + 1;
        part.rows = args_.weights->parts[part.first].n;
        if (!multiply(part, x, m0, rows)) return false;
        part.first_row += part.rows;
      }
      return true;
    }
    return straight(span, x, m0, rows) || through_sums(span, x, m0, rows);
  }

 private:
  bool whole_blocks(const PartSpan& span) const {
    for (size_t part = span.first; part < span.last; ++part) {
      if (args_.weights->parts[part].n % kBlockSide != 0) return false;
    }
    return true;
  }
  cuda::Product product(const PartSpan& span, const cuda::Operand& x, int64_t rows) const {
    cuda::Product p;
    p.a = args_.packed + span.first_row * rows_.row_bytes;
    p.a_stride = rows_.row_bytes;
    p.b = x.data;
    p.b_stride = x.stride;
    p.n = span.rows;
    p.k = rows_.row_bytes;  // zeros from K on, in both
    p.m = rows;
    p.operand = product_ == CodeProduct::int8 ? DType::i8 : DType::f8_e4m3;
    p.workspace = scratch_.library;
    p.workspace_bytes = cuda::cublaslt_workspace_bytes;
    p.stream = args_.stream;
    if (product_ == CodeProduct::e4m3_block) {
      p.scales = cuda::ProductScales::block128;
      p.a_scales = args_.packed + rows_.block_scales + first_block_of(layer_, span.first) * rows_.block_row_floats * 4;
      p.b_scales = x.group_scales;
    }
    return p;
  }

  // Into y, where the library can scale and y is as it wants it.
  bool straight(const PartSpan& span, const cuda::Operand& x, int64_t m0, int64_t rows) const {
    const int64_t first = output_column(*args_.weights, span.first, 0);
    auto* y = static_cast<uint16_t*>(args_.y.data) + m0 * args_.y.stride + first;
    if (!hopper_ || product_ == CodeProduct::int8 || layer_.bias ||
        !side_by_side(*args_.weights, span.first, span.last) || rows_multiplied(product_, rows) != rows ||
        reinterpret_cast<uintptr_t>(y) % 16 != 0 || args_.y.stride % 8 != 0)
      return false;
    cuda::Product p = product(span, x, rows);
    if (product_ == CodeProduct::e4m3) {
      p.scales = cuda::ProductScales::outer;
      p.a_scales = factors(span.first_row);
      p.b_scales = x.token_factor;
    }
    p.d = y;
    p.d_stride = args_.y.stride;
    p.out = args_.y.dtype;
    return cuda::multiply(p);
  }

  bool through_sums(const PartSpan& span, const cuda::Operand& x, int64_t m0, int64_t rows) const {
    cuda::Product p = product(span, x, rows_multiplied(product_, rows));
    p.d = scratch_.sums;
    p.d_stride = span.rows;
    p.out = product_ == CodeProduct::int8 ? DType::i32 : DType::f32;
    if (!cuda::multiply(p)) return false;
    int64_t row = span.first_row;
    for (size_t part = span.first; part < span.last; ++part) {
      const int64_t n = args_.weights->parts[part].n, column = output_column(*args_.weights, part, 0);
      cuda::FinishSums finish;
      finish.sums = scratch_.sums + (row - span.first_row);
      finish.integers = product_ == CodeProduct::int8;
      finish.sums_stride = span.rows;
      finish.rows = rows;
      finish.columns = n;
      if (product_ != CodeProduct::e4m3_block) {
        finish.token_factor = x.token_factor;
        finish.row_factor = factors(row);
      }
      if (rows_.bias >= 0) finish.bias = reinterpret_cast<const float*>(args_.packed + rows_.bias) + row;
      finish.y = args_.y.data;
      finish.dtype = args_.y.dtype;
      finish.y_stride = args_.y.stride;
      finish.column_step = n > 1 ? output_column(*args_.weights, part, 1) - column : 1;
      finish.first_column = m0 * args_.y.stride + column;
      if (!cuda::finish_sums(finish, args_.stream)) return false;
      row += n;
    }
    return true;
  }

  const float* factors(int64_t row) const { return reinterpret_cast<const float*>(args_.packed + rows_.factors) + row; }

  const RunArgs& args_;
  const LayerSpec& layer_;
  CodeProduct product_;
  const CodeScratch& scratch_;
  CodeRows rows_;
  bool hopper_;
};

void run_code_product(const RunArgs& args, CodeProduct product) {
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  const int64_t m = args.x.rows;
  if (m == 0) return;
  CodeScratch scratch;
  carve_codes(layer, product, m, args.workspace.data(), &scratch);
  const cuda::OperandNeeds needs = code_needs(layer, product);
  const CodeRows rows_of = code_rows_of(layer);
  const CodeMultiplier multiplier(args, product, scratch);
  const int64_t versions = activation_versions(layer, ActivationUse::as_checkpoint);
  for (int64_t m0 = 0; m0 < m; m0 += kMostRows) {
    const int64_t rows = std::min(kMostRows, m - m0);
    PartSpan span;
    while (span.last < weights.parts.size()) {
      span.first = span.last;
      span.first_row += span.rows;
      span.rows = 0;
      const size_t version = activation_version(weights, span.first, versions);
      for (; span.last < weights.parts.size() && activation_version(weights, span.last, versions) == version;
           ++span.last)
        span.rows += weights.parts[span.last].n;
      const float* pre_scale = nullptr;
      if (rows_of.pre_scale >= 0)
        pre_scale = reinterpret_cast<const float*>(args.packed + rows_of.pre_scale) +
                    static_cast<int64_t>(span.first) * layer.k;
      cuda::Operand x;
      if (!cuda::make_operand(args, needs, span.first, m0, rows, pre_scale,
                              scratch.operands + static_cast<int64_t>(version) * scratch.operand_stride, x) ||
          !multiplier.multiply(span, x, m0, rows))
        return cuda::failed(args);
    }
  }
}

template <CodeProduct Product>
void run_code_product_as(const RunArgs& args) {
  run_code_product(args, Product);
}
void (*run_code_product_of(CodeProduct product))(const RunArgs&) {
  if (product == CodeProduct::e4m3) return run_code_product_as<CodeProduct::e4m3>;
  if (product == CodeProduct::e4m3_block) return run_code_product_as<CodeProduct::e4m3_block>;
  return run_code_product_as<CodeProduct::int8>;
}

#else

void (*run_code_product_of(CodeProduct))(const RunArgs&) { return nullptr; }

#endif

template <CodeProduct Product>
int64_t code_workspace_of(const LayerSpec& layer, int64_t m, int) {
  return code_workspace(layer, Product, m);
}

}  // namespace

Kernel make_cuda_code_product(std::string_view name, CodeProduct product) {
  const bool int8 = product == CodeProduct::int8;
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "cublaslt";
  kernel.platform = Platform::cuda;
  kernel.layout = &code_rows;
  kernel.accumulator = int8 ? "int32" : "fp32";
  Contract& contract = kernel.contract;
  contract.archs = cuda_archs();
  contract.libraries = {"cublaslt"};
  contract.dtypes = {DType::bf16, DType::f16};
  contract.weight_formats = {int8 ? Format::int8 : Format::e4m3};
  contract.n.multiple = 16;  // of 8-bit products
  contract.zero_points = contract.act_order = contract.asymmetric_activations = false;
  contract.capture_safe = true;
  contract.verified = {"sm_90"};
  contract.targets = cuda::code_targets();
  kernel.bound_u = int8 ? 0x1p-24 : 0x1p-23;
  if (!int8) kernel.bound_product = kFp8SumLoss;
  kernel.workspace_bytes = product == CodeProduct::e4m3         ? code_workspace_of<CodeProduct::e4m3>
                           : product == CodeProduct::e4m3_block ? code_workspace_of<CodeProduct::e4m3_block>
                                                                : code_workspace_of<CodeProduct::int8>;
  kernel.run = run_code_product_of(product);
  return kernel;
}

}  // namespace gearshift
