#include "pipeline/run_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
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

// Integers of a router, checked against the number of experts.
Result<int32_t> expert_number(const std::string& path, const TensorInfo& tensor, ByteView bytes, int64_t i,
                              int64_t experts) {
  int64_t value = 0;
  if (tensor.dtype == DType::i64 || tensor.dtype == DType::u64) {
    std::memcpy(&value, bytes.data() + i * 8, 8);
  } else {
    value = static_cast<int64_t>(read_number(bytes, tensor.dtype, i));
  }
  if (value < 0 || value >= experts)
    return wrong(path, tensor.name,
                 fmt::format("expert {} at token {}, slot {}", value, i / tensor.shape[1], i % tensor.shape[1]),
                 fmt::format("0 to {}", experts - 1));
  return static_cast<int32_t>(value);
}

bool is_integer_dtype(DType dtype) {
  constexpr DType kIntegers[] = {DType::i64, DType::i32, DType::i16, DType::i8,
                                 DType::u64, DType::u32, DType::u16, DType::u8};
  return std::find(std::begin(kIntegers), std::end(kIntegers), dtype) != std::end(kIntegers);
}

constexpr std::string_view name_of_ids = "topk_ids", name_of_weights = "topk_weights";

// nullptr where the file has neither tensor.
Result<std::shared_ptr<const GivenRouting>> read_router(const Checkpoint& file, const std::string& prefix,
                                                        int64_t tokens, int64_t experts) {
  const std::string& path = file.path();
  const std::string ids_name = prefix + std::string(name_of_ids), weights_name = prefix + std::string(name_of_weights);
  const TensorInfo *ids = file.find(ids_name), *weights = file.find(weights_name);
  if (ids == nullptr && weights == nullptr) return std::shared_ptr<const GivenRouting>();
  if (ids == nullptr || weights == nullptr)
    return wrong(path, ids == nullptr ? ids_name : weights_name, "missing",
                 fmt::format("[M, top_k], as {} is there", ids == nullptr ? weights_name : ids_name));
  if (!is_integer_dtype(ids->dtype)) return wrong(path, ids_name, std::string(name(ids->dtype)), "integers");
  if (!is_activation_dtype(weights->dtype))
    return wrong(path, weights_name, std::string(name(weights->dtype)), "F32, F16, BF16 or F64");
  if (ids->shape.size() != 2 || ids->shape[0] != tokens || ids->shape[1] < 1)
    return wrong(path, ids_name, to_string(ids->shape), fmt::format("[{}, top_k], a row for each of x", tokens));
  if (weights->shape != ids->shape) return wrong(path, weights_name, to_string(weights->shape), to_string(ids->shape));
  GEARSHIFT_TRY(const ByteView id_bytes, file.bytes(*ids));
  GEARSHIFT_TRY(const ByteView weight_bytes, file.bytes(*weights));
  auto routing = std::make_shared<GivenRouting>();
  routing->top_k = ids->shape[1];
  for (int64_t i = 0; i < tokens * routing->top_k; ++i) {
    GEARSHIFT_TRY(const int32_t expert, expert_number(path, *ids, id_bytes, i, experts));
    routing->experts.push_back(expert);
    const auto weight = static_cast<float>(read_number(weight_bytes, weights->dtype, i));
    if (!std::isfinite(weight))
      return wrong(path, weights_name, fmt::format("{:g} at token {}", weight, i / routing->top_k), "finite numbers");
    routing->weights.push_back(weight);
  }
  return std::shared_ptr<const GivenRouting>(std::move(routing));
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

RunJobs jobs_with_made_up_input(const std::vector<LayerSpec>& rows, bool with_blocks) {
  RunJobs result;
  for (size_t row = 0; row < rows.size(); ++row) {
    const int64_t experts = std::max<int64_t>(1, rows[row].experts);
    result.jobs.push_back({row, 0, experts, nullptr, experts == 1 ? rows[row].name : "", 0, rows[row].n});
  }
  if (!with_blocks) return result;
  for (const ExpertPair& pair : expert_pairs(rows)) {
    const int64_t n = rows[pair.second].n;
    result.jobs.push_back({pair.first, 0, 0, nullptr, pair.name, 0, n, std::make_shared<const ExpertPair>(pair)});
  }
  return result;
}

Result<RunJobs> jobs_from_file(const std::string& path, const std::vector<LayerSpec>& rows, DType dtype) {
  GEARSHIFT_TRY(const Checkpoint file, Checkpoint::open(path));
  RunJobs result;
  const std::vector<ExpertPair> pairs = expert_pairs(rows);
  const auto job_of = [&](const ExpertPair& pair, std::shared_ptr<const OwnedMatrix> x,
                          std::shared_ptr<const GivenRouting> routing) {
    return RunJob{pair.first,
                  0,
                  0,
                  std::move(x),
                  pair.name,
                  0,
                  rows[pair.second].n,
                  std::make_shared<const ExpertPair>(pair),
                  std::move(routing)};
  };
  if (const TensorInfo* all = file.find(name_for_all); all != nullptr) {
    const size_t routing_tensors =
        (file.find(name_of_ids) != nullptr ? 1 : 0) + (file.find(name_of_weights) != nullptr ? 1 : 0);
    if (file.tensors().size() > 1 + routing_tensors) {
      return wrong(path, name_for_all, fmt::format("{} other tensors beside it", file.tensors().size() - 1),
                   "x alone, x with topk_ids and topk_weights, or one tensor per layer name");
    }
    if (routing_tensors > 0 && pairs.empty())
      return wrong(path, file.find(name_of_ids) != nullptr ? name_of_ids : name_of_weights,
                   "no expert block among the layers", "x alone, or layers with experts");
    GEARSHIFT_TRY(const auto x, read_matrix(file, *all, dtype));
    std::set<size_t> in_blocks;
    for (const ExpertPair& pair : pairs) {
      if (routing_tensors == 0) break;
      GEARSHIFT_CHECK(check_columns(path, name_for_all, *x, rows[pair.first]));
      GEARSHIFT_TRY(auto routing, read_router(file, "", x->rows, rows[pair.first].experts));
      result.jobs.push_back(job_of(pair, x, std::move(routing)));
      in_blocks.insert({pair.first, pair.second});
    }
    for (size_t row = 0; row < rows.size(); ++row) {
      if (in_blocks.count(row) > 0) continue;
      if (rows[row].experts > 1) {
        result.not_run.push_back(rows[row].name +
                                 ": each expert has a result of its own; name an expert's module in --input, or give "
                                 "topk_ids and topk_weights beside x for the whole block");
        continue;
      }
      GEARSHIFT_CHECK(check_columns(path, name_for_all, *x, rows[row]));
      result.jobs.push_back({row, 0, 1, x, rows[row].name, 0, rows[row].n});
    }
    return result;
  }

  std::set<std::string_view> used;
  std::set<size_t> in_blocks;
  for (const ExpertPair& pair : pairs) {
    const TensorInfo* tensor = file.find(pair.name);
    if (tensor == nullptr) continue;
    used.insert(tensor->name);
    GEARSHIFT_TRY(auto x, read_matrix(file, *tensor, dtype));
    GEARSHIFT_CHECK(check_columns(path, tensor->name, *x, rows[pair.first]));
    GEARSHIFT_TRY(auto routing, read_router(file, pair.name + ".", x->rows, rows[pair.first].experts));
    if (routing == nullptr)
      return wrong(path, tensor->name, "no router's choice for it",
                   fmt::format("{0}.topk_ids and {0}.topk_weights, each [M, top_k]", pair.name));
    for (const std::string_view word : {name_of_ids, name_of_weights})
      used.insert(file.find(pair.name + "." + std::string(word))->name);
    result.jobs.push_back(job_of(pair, std::move(x), std::move(routing)));
    in_blocks.insert({pair.first, pair.second});
  }
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
    if (result.jobs.size() == before && in_blocks.count(row) == 0)
      result.not_run.push_back(rows[row].name + ": --input has no tensor for it");
  }
  for (const TensorInfo& tensor : file.tensors()) {
    if (used.count(tensor.name) == 0)
      return unknown_layer(fmt::format("--input {}", printable(path)), tensor.name, rows);
  }
  return result;
}

}  // namespace gearshift
