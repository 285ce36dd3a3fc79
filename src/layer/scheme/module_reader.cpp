#include "layer/scheme/module_reader.h"

#include <algorithm>

#include "base/text.h"
#include "base/try.h"

namespace gearshift {
namespace {

std::string describe(DTypes dtypes) {
  std::string text;
  for (DType dtype : dtypes) text += (text.empty() ? "" : " or ") + std::string(name(dtype));
  return text;
}

// Shapes compare without dimensions of 1: scalars are stored as [] or [1], channel scales as [N] or [N,1], block scales
// with single rows squeezed away (formats.md trap 20).
bool same_squeezed(const Shape& a, const Shape& b) {
  auto next = [](Shape::const_iterator at, const Shape& shape) {
    while (at != shape.end() && *at == 1) ++at;
    return at;
  };
  auto i = next(a.begin(), a), j = next(b.begin(), b);
  while (i != a.end() && j != b.end() && *i == *j) i = next(i + 1, a), j = next(j + 1, b);
  return i == a.end() && j == b.end();
}

// "32 scale rows for 16 groups": a table of scales that belongs to another split of the layer. "" for other
// differences.
std::string miscounted_groups(const Shape& found, const Shape& wanted) {
  if (found.size() != wanted.size() || found.size() < 2) return "";
  const size_t row = found.size() - 2, column = found.size() - 1;
  const auto text = [&](size_t axis, const char* what) {
    return std::to_string(found[axis]) + " scale " + what + " for " + std::to_string(wanted[axis]) + " groups";
  };
  if (found[column] == wanted[column] && wanted[column] > 1) return text(row, "rows");
  if (found[row] == wanted[row] && wanted[row] > 1) return text(column, "columns");
  return "";
}

// Far above any real layer, and small enough that products of two dimensions never overflow.
constexpr int64_t kMaxDimension = int64_t{1} << 31;

}  // namespace

ErrorInfo ModuleReader::contradiction(std::string_view suffix, std::string found, std::string wanted,
                                      std::string hint) const {
  const TensorInfo* tensor = module_.find(suffix);
  // The tensors of a stack that hangs off its parent have names of one component with it: experts.down_proj_scales.
  std::string subject =
      tensor != nullptr ? tensor->name : module_.name + (module_.raw_stack ? "_" : ".") + std::string(suffix);
  return ErrorInfo{
      ErrorCode::damaged_checkpoint, std::move(subject), std::move(found), std::move(wanted), std::move(hint), {}};
}

Result<const TensorInfo*> ModuleReader::required(std::string_view suffix, DTypes dtypes, std::string_view why) {
  const TensorInfo* tensor = module_.find(suffix);
  if (tensor == nullptr) {
    return contradiction(suffix, "no such tensor", describe(dtypes) + ": " + std::string(why),
                         "the checkpoint is incomplete, or its quantization config belongs to another one");
  }
  if (std::find(dtypes.begin(), dtypes.end(), tensor->dtype) == dtypes.end()) {
    return contradiction(suffix, std::string(name(tensor->dtype)) + " " + to_string(tensor->shape),
                         describe(dtypes) + ": " + std::string(why));
  }
  used_.push_back(suffix);
  return tensor;
}

Result<ModuleReader::Matrix> ModuleReader::codes(std::string_view suffix, DTypes dtypes, std::string_view why) {
  GEARSHIFT_TRY(const TensorInfo* tensor, required(suffix, dtypes, why));
  const Shape& shape = tensor->shape;
  const bool positive = std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d > 0 && d < kMaxDimension; });
  if ((shape.size() != 2 && shape.size() != 3) || !positive) {
    return contradiction(
        suffix, std::string(name(tensor->dtype)) + " " + to_string(shape),
        "a matrix [rows, columns] (or [experts, rows, columns]) that is not empty: " + std::string(why));
  }
  result_.experts = shape.size() == 3 ? shape[0] : 0;
  result_.tensors.push_back({TensorRole::weight, tensor->name, tensor->dtype, shape});
  return Matrix{shape[shape.size() - 2], shape.back(), tensor->dtype};
}

Result<DType> ModuleReader::take(TensorRole role, std::string_view suffix, DTypes dtypes, const Shape& shape,
                                 std::string_view why) {
  GEARSHIFT_TRY(const TensorInfo* tensor, required(suffix, dtypes, why));
  Shape wanted = shape;
  // One number may serve all experts of a stack.
  const bool shared =
      shape.empty() && std::all_of(tensor->shape.begin(), tensor->shape.end(), [](int64_t d) { return d == 1; });
  if (result_.experts > 0 && !shared) wanted.insert(wanted.begin(), result_.experts);
  if (!same_squeezed(tensor->shape, wanted)) {
    return contradiction(suffix, std::string(name(tensor->dtype)) + " " + to_string(tensor->shape),
                         std::string(name(tensor->dtype)) + " " + to_string(wanted) + ": " + std::string(why),
                         role == TensorRole::weight_scale ? miscounted_groups(tensor->shape, wanted) : "");
  }
  result_.tensors.push_back({role, tensor->name, tensor->dtype, tensor->shape});
  return tensor->dtype;
}

Result<std::optional<DType>> ModuleReader::take_optional(TensorRole role, std::string_view suffix, DTypes dtypes,
                                                         const Shape& shape, std::string_view why) {
  if (!has(suffix)) return std::optional<DType>{};
  GEARSHIFT_TRY(DType dtype, take(role, suffix, dtypes, shape, why));
  return std::optional<DType>{dtype};
}

Result<ModuleScheme> ModuleReader::finish(const Scheme& scheme, int64_t n, int64_t k) {
  if (has("bias") && !module_.tied_head) {
    GEARSHIFT_CHECK(
        take(TensorRole::bias, "bias", {DType::f32, DType::f16, DType::bf16}, {n}, "one bias per output row"));
  }
  for (const auto& [suffix, tensor] : module_.tensors) {
    const bool used = std::find(used_.begin(), used_.end(), suffix) != used_.end();
    if (used || !is_quantization_suffix(suffix)) continue;
    return contradiction(suffix, std::string(name(tensor->dtype)) + " " + to_string(tensor->shape),
                         scheme.quantized ? "no such tensor: the module's scheme in the config does not use it"
                                          : "no such tensor: the config says that this module is not quantized",
                         "config and tensors contradict each other; nothing is guessed");
  }
  // Zero points that symmetric weights were saved with and that their scheme skips stay part of the layer: that they
  // say nothing else is for whoever reads values to see.
  const TensorInfo* zeros = module_.find("weight_zero_point");
  const bool taken = std::any_of(result_.tensors.begin(), result_.tensors.end(), [](const StoredTensor& tensor) {
    return tensor.role == TensorRole::weight_zero_point;
  });
  if (scheme.weight.symmetric && zeros != nullptr && !taken)
    result_.tensors.push_back({TensorRole::weight_zero_point, zeros->name, zeros->dtype, zeros->shape});
  result_.scheme = scheme;
  result_.n = n;
  result_.k = k;
  return std::move(result_);
}

}  // namespace gearshift
