#include "pipeline/run_inputs.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "gearshift/checkpoint.h"
#include "pipeline/session.h"
#include "prepare/bad_value.h"

namespace gearshift {

namespace {

constexpr std::string_view name_for_all = "x";

ErrorInfo wrong(const std::string& path, std::string_view tensor, std::string found, std::string wanted) {
  ErrorInfo error;
  error.code = ErrorCode::usage;
  error.subject = fmt::format("--input {}: tensor {}", printable(path), printable(tensor));
  error.found = std::move(found);
  error.wanted = std::move(wanted);
  return error;
}

// To fp32 by rounding to odd: a second rounding, to any narrower type, then gives what one rounding would have given
// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
float round_to_odd(double value) {
  float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !std::isfinite(nearest)) return nearest;
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) nearest = std::nextafter(nearest, 0.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) | 1u);
}

bool is_activation_dtype(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

Result<std::shared_ptr<const OwnedMatrix>> read_matrix(const Checkpoint& file, const TensorInfo& tensor, DType dtype) {
  const std::string& path = file.path();
  if (tensor.shape.size() != 2) return wrong(path, tensor.name, to_string(tensor.shape), "two dimensions: [M,K]");
  if (!is_activation_dtype(tensor.dtype))
    return wrong(path, tensor.name, std::string(name(tensor.dtype)), "F32, F16, BF16 or F64");
  GEARSHIFT_TRY(const ByteView bytes, file.bytes(tensor));
  const int64_t rows = tensor.shape[0], cols = tensor.shape[1];
  GEARSHIFT_TRY(OwnedMatrix matrix, allocate_matrix(dtype, rows, cols, fmt::format("input {}", tensor.name)));
  for (int64_t i = 0; i < rows * cols; ++i) {
    const double value = read_number(bytes, tensor.dtype, i);
    store_element(matrix.bytes.data(), dtype, i, dtype == DType::f32 ? static_cast<float>(value) : round_to_odd(value));
    if (!std::isfinite(load_element(matrix.bytes.data(), dtype, i))) {
      return wrong(path, tensor.name, fmt::format("{:g} at row {}, column {}", value, i / cols, i % cols),
                   fmt::format("finite numbers that {} holds", name(dtype)));
    }
  }
  return std::make_shared<const OwnedMatrix>(std::move(matrix));
}

// All jobs that a name could ask for: the row itself, and each of its modules.
std::vector<RunJob> named_jobs(const LayerSpec& layer, size_t row) {
  std::vector<RunJob> jobs;
  if (layer.experts <= 1) jobs.push_back({row, 0, 1, nullptr, layer.name, 0, layer.n});
  if (layer.stacked || layer.row_order != RowOrder::concatenated) return jobs;
  const int64_t experts = std::max<int64_t>(1, layer.experts);
  const int64_t parts = static_cast<int64_t>(layer.modules.size()) / experts;
  for (int64_t expert = 0; expert < experts; ++expert) {
    int64_t column = 0;
    for (int64_t p = 0; p < parts; ++p) {
      const Module& module = layer.modules[static_cast<size_t>(expert * parts + p)];
      if (module.name != layer.name) jobs.push_back({row, expert, expert + 1, nullptr, module.name, column, module.n});
      column += module.n;
    }
  }
  return jobs;
}

Result<void> check_columns(const std::string& path, std::string_view tensor, const OwnedMatrix& x,
                           const LayerSpec& layer) {
  if (x.cols == layer.k) return {};
  return wrong(path, tensor, fmt::format("[{},{}]", x.rows, x.cols),
               fmt::format("[M,{}] for layer {}", layer.k, layer.name));
}

}  // namespace

RunJobs jobs_with_made_up_input(const std::vector<LayerSpec>& rows) {
  RunJobs result;
  for (size_t row = 0; row < rows.size(); ++row) {
    const int64_t experts = std::max<int64_t>(1, rows[row].experts);
    result.jobs.push_back({row, 0, experts, nullptr, experts == 1 ? rows[row].name : "", 0, rows[row].n});
  }
  return result;
}

Result<RunJobs> jobs_from_file(const std::string& path, const std::vector<LayerSpec>& rows, DType dtype) {
  GEARSHIFT_TRY(const Checkpoint file, Checkpoint::open(path));
  RunJobs result;
  if (const TensorInfo* all = file.find(name_for_all); all != nullptr) {
    if (file.tensors().size() > 1) {
      return wrong(path, name_for_all, fmt::format("{} other tensors beside it", file.tensors().size() - 1),
                   "x alone, or one tensor per layer name");
    }
    GEARSHIFT_TRY(const auto x, read_matrix(file, *all, dtype));
    for (size_t row = 0; row < rows.size(); ++row) {
      if (rows[row].experts > 1) {
        result.not_run.push_back(rows[row].name +
                                 ": each expert has a result of its own; name an expert's module in --input");
        continue;
      }
      GEARSHIFT_CHECK(check_columns(path, name_for_all, *x, rows[row]));
      result.jobs.push_back({row, 0, 1, x, rows[row].name, 0, rows[row].n});
    }
    return result;
  }

  std::set<std::string_view> used;
  for (size_t row = 0; row < rows.size(); ++row) {
    const size_t before = result.jobs.size();
    for (RunJob& job : named_jobs(rows[row], row)) {
      const TensorInfo* tensor = file.find(job.output);
      if (tensor == nullptr) continue;
      used.insert(tensor->name);
      GEARSHIFT_TRY(job.x, read_matrix(file, *tensor, dtype));
      GEARSHIFT_CHECK(check_columns(path, tensor->name, *job.x, rows[row]));
      result.jobs.push_back(std::move(job));
    }
    if (result.jobs.size() == before) result.not_run.push_back(rows[row].name + ": --input has no tensor for it");
  }
  for (const TensorInfo& tensor : file.tensors()) {
    if (used.count(tensor.name) == 0)
      return unknown_layer(fmt::format("--input {}", printable(path)), tensor.name, rows);
  }
  return result;
}

}  // namespace gearshift
