#include "gearshift/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace gearshift {

namespace {

bool holds(const std::vector<DType>& allowed, DType dtype) {
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), dtype) != allowed.end();
}

// Only a failing call comes here: the texts may allocate.
ErrorInfo refuse(const LayerSpec& layer, std::string_view argument, std::string found, std::string wanted) {
  ErrorInfo error;
  error.code = ErrorCode::usage;
  error.subject = fmt::format("run: {} of layer {}", argument, layer.name);
  error.found = std::move(found);
  error.wanted = std::move(wanted);
  return error;
}

template <class M>
Result<void> check_matrix(const LayerSpec& layer, std::string_view argument, const M& matrix, int64_t cols) {
  if (matrix.cols != cols)
    return refuse(layer, argument, fmt::format("{} columns", matrix.cols), fmt::format("{}", cols));
  if (matrix.rows < 0) return refuse(layer, argument, fmt::format("{} rows", matrix.rows), "0 or more");
  if (matrix.stride < cols)
    return refuse(layer, argument, fmt::format("stride {}", matrix.stride), fmt::format("{} or more", cols));
  if (matrix.dtype != DType::f32 && matrix.dtype != DType::f16 && matrix.dtype != DType::bf16) {
    return refuse(layer, argument, std::string(name(matrix.dtype)), "F32, F16 or BF16");
  }
  if (matrix.rows > 0 && matrix.data == nullptr) return refuse(layer, argument, "a null pointer", "data");
  return {};
}

}  // namespace

Result<void> run(const PreparedLayer& prepared, ConstMatrix x, Matrix y, std::span<uint8_t> workspace, int threads,
                 int64_t expert, void* stream) {
  const LayerSpec& layer = prepared.plan->layer;
  if (auto checked = check_matrix(layer, "x", x, layer.k); !checked) return checked;
  if (auto checked = check_matrix(layer, "y", y, layer.n); !checked) return checked;
  if (x.rows != y.rows) return refuse(layer, "y", fmt::format("{} rows", y.rows), fmt::format("{}, as x has", x.rows));
  if (x.dtype != y.dtype)
    return refuse(layer, "y", std::string(name(y.dtype)), fmt::format("{}, as x has", name(x.dtype)));
  if (expert < 0 || expert >= static_cast<int64_t>(prepared.weights.size())) {
    return refuse(layer, "expert", fmt::format("{}", expert),
                  fmt::format("0 to {}", static_cast<int64_t>(prepared.weights.size()) - 1));
  }
  if (threads < 1) return refuse(layer, "threads", fmt::format("{}", threads), "1 or more");
  if (x.rows == 0) return {};

  const PlannedRange& range = range_for(*prepared.plan->decision, x.rows);
  const Kernel& kernel = *range.kernel;
  if (!holds(kernel.contract.dtypes, x.dtype)) {
    return refuse(layer, "x", std::string(name(x.dtype)),
                  fmt::format("the type the plan was made for ({})", kernel.name));
  }
  if (x.rows > kernel.contract.max_output_elements / layer.n) {
    return refuse(layer, "x", fmt::format("{} rows", x.rows),
                  fmt::format("at most {}", kernel.contract.max_output_elements / layer.n));
  }
  const int64_t needed = kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(layer, x.rows, threads);
  if (static_cast<int64_t>(workspace.size()) < needed) {
    return refuse(layer, "workspace", fmt::format("{} bytes", workspace.size()), fmt::format("{} or more", needed));
  }
  if (needed > 0 && reinterpret_cast<uintptr_t>(workspace.data()) % 64 != 0) {
    return refuse(layer, "workspace", "an unaligned address", "a multiple of 64");
  }
  run_kernel(kernel, prepared, x, y, workspace, threads, expert, stream, range.tactic);
  return {};
}

void run_kernel(const Kernel& kernel, const PreparedLayer& prepared, ConstMatrix x, Matrix y,
                std::span<uint8_t> workspace, int threads, int64_t expert, void* stream, std::string_view tactic) {
  RunArgs args;
  args.weights = &prepared.weights[static_cast<size_t>(expert)];
  args.packed = prepared.packed_for(kernel, expert);
  args.x = x;
  args.y = y;
  args.workspace = workspace;
  args.threads = threads;
  args.stream = stream;
  args.tactic = tactic;
  kernel.run(args);
}

}  // namespace gearshift
