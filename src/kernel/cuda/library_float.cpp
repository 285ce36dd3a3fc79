#include "kernel/cuda/library_float.h"

#include <algorithm>

#include "device/cublaslt.h"
#include "device/cuda.h"
#include "kernel/cuda/emulation.h"
#include "kernel/cuda/failure.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/stage/panel.h"
#include "kernel/layout/code_rows.h"
#include "kernel/output.h"
#include "kernel/parts.h"

namespace gearshift {

namespace {

constexpr int64_t kMostRows = 8192;                  // of x at a time
constexpr int64_t kElementBytes = 2;                 // bf16 or f16
constexpr int64_t kBytesOfSums = int64_t{64} << 20;  // at a time, where results go through fp32

cuda::OperandNeeds needs_of(const LayerSpec& layer, DType dtype) {
  cuda::OperandNeeds needs;
  needs.use = ActivationUse::float16;
  needs.element = dtype;
  needs.columns = code_rows_of(layer).row_bytes / kElementBytes;
  return needs;
}

// Rows of x whose sums are kept at a time: for a y that cuBLASLt does not take, and for a bias.
int64_t rows_of_sums(const LayerSpec& layer, int64_t m) {
  return std::min(m, std::max<int64_t>(16, kBytesOfSums / (layer.n * static_cast<int64_t>(sizeof(float)))));
}

struct FloatScratch {
  uint8_t* library = nullptr;
  float* sums = nullptr;  // [rows_of_sums][N]
  uint8_t* operand = nullptr;
};
int64_t carve_floats(const LayerSpec& layer, DType dtype, int64_t m, uint8_t* base, FloatScratch* out) {
  const int64_t rows = std::min(m, kMostRows);
  Carver carver(base);
  FloatScratch s;
  s.library = carver.take_aligned<uint8_t>(cuda::cublaslt_workspace_bytes, cuda::cublaslt_alignment);
  s.sums = carver.take<float>(rows_of_sums(layer, m) * layer.n);
  s.operand = carver.take<uint8_t>(cuda::operand_bytes(needs_of(layer, dtype), rows));
  if (out != nullptr) *out = s;
  return carver.used();
}

#ifdef GEARSHIFT_CUDA_TARGETS

bool finish_part(const RunArgs& args, const CodeRows& layout, const FloatScratch& scratch, size_t part,
                 int64_t first_row, int64_t m0, int64_t rows) {
  const LayerWeights& weights = *args.weights;
  const int64_t n = weights.parts[part].n, column = output_column(weights, part, 0);
  cuda::FinishSums finish;
  finish.sums = scratch.sums + first_row;
  finish.sums_stride = weights.spec->n;
  finish.rows = rows;
  finish.columns = n;
  if (layout.bias >= 0) finish.bias = reinterpret_cast<const float*>(args.packed + layout.bias) + first_row;
  finish.y = args.y.data;
  finish.dtype = args.y.dtype;
  finish.y_stride = args.y.stride;
  finish.column_step = n > 1 ? output_column(weights, part, 1) - column : 1;
  finish.first_column = m0 * args.y.stride + column;
  return cuda::finish_sums(finish, args.stream);
}

// Rows [m0, m0 + rows) of x against all parts at once: their rows follow each other.
bool multiply_floats(const RunArgs& args, DType dtype, const FloatScratch& scratch, int64_t m0, int64_t rows) {
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  const CodeRows layout = code_rows_of(layer);
  cuda::Operand x;
  if (!cuda::make_operand(args, needs_of(layer, dtype), 0, m0, rows, nullptr, scratch.operand, x)) return false;
  cuda::Product p;
  p.a = args.packed;
  p.a_stride = layout.row_bytes / kElementBytes;
  p.b = x.data;
  p.b_stride = x.stride;
  p.n = layer.n;
  p.k = x.padded ? std::min(p.a_stride, x.stride) : layer.k;
  p.m = rows;
  p.operand = dtype;
  p.workspace = scratch.library;
  p.workspace_bytes = cuda::cublaslt_workspace_bytes;
  p.stream = args.stream;
  auto* y = static_cast<uint16_t*>(args.y.data) + m0 * args.y.stride;
  if (!layer.bias && side_by_side(weights, 0, weights.parts.size()) && reinterpret_cast<uintptr_t>(y) % 16 == 0 &&
      args.y.stride * kElementBytes % 16 == 0) {
    p.d = y;
    p.d_stride = args.y.stride;
    p.out = args.y.dtype;
    if (cuda::multiply(p)) return true;
  }
  p.d = scratch.sums;
  p.d_stride = layer.n;
  p.out = DType::f32;
  const int64_t step = rows_of_sums(layer, args.x.rows);
  for (int64_t row = 0; row < rows; row += step) {
    p.b = static_cast<const uint8_t*>(x.data) + row * x.stride * kElementBytes;
    p.m = std::min(step, rows - row);
    if (!cuda::multiply(p)) return false;
    int64_t first_row = 0;
    for (size_t part = 0; part < weights.parts.size(); ++part) {
      if (!finish_part(args, layout, scratch, part, first_row, m0 + row, p.m)) return false;
      first_row += weights.parts[part].n;
    }
  }
  return true;
}

template <DType Type>
void run_float_product(const RunArgs& args) {
  const int64_t m = args.x.rows;
  if (m == 0) return;
  FloatScratch scratch;
  carve_floats(*args.weights->spec, Type, m, args.workspace.data(), &scratch);
  for (int64_t m0 = 0; m0 < m; m0 += kMostRows) {
    if (!multiply_floats(args, Type, scratch, m0, std::min(kMostRows, m - m0))) return cuda::failed(args);
  }
}

constexpr auto run_bf16 = run_float_product<DType::bf16>;
constexpr auto run_f16 = run_float_product<DType::f16>;

#else

constexpr void (*run_bf16)(const RunArgs&) = nullptr;
constexpr void (*run_f16)(const RunArgs&) = nullptr;

#endif

template <DType Type>
int64_t float_workspace(const LayerSpec& layer, int64_t m, int) {
  return m == 0 ? 0 : carve_floats(layer, Type, m, nullptr, nullptr);
}

}  // namespace

Kernel make_cuda_float_product(std::string_view name, DType dtype) {
  const bool bf16 = dtype == DType::bf16;
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "cublaslt";
  kernel.platform = Platform::cuda;
  kernel.families = {Family::bf16};
  kernel.layout = &code_rows;
  Contract& contract = kernel.contract;
  contract.archs = cuda_archs();
  contract.libraries = {"cublaslt"};
  contract.weight_formats = {Format::float_};
  contract.weight_dtypes = {dtype};
  contract.dtypes = {dtype};
  // Sums of an odd number of columns would not lie on 16 bytes.
  contract.n.multiple = 4;
  contract.pre_scale = false;
  contract.capture_safe = true;
  contract.verified = {"sm_90"};
  contract.targets = cuda::code_targets();
  kernel.bound_u = 0x1p-23;  // tensor cores add with a little less than fp32
  kernel.workspace_bytes = bf16 ? float_workspace<DType::bf16> : float_workspace<DType::f16>;
  kernel.run = bf16 ? run_bf16 : run_f16;
  kernel.formula = "y = x * W^T + bias, cuBLASLt, fp32 sums";
  return kernel;
}

}  // namespace gearshift
