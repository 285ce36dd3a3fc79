#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/try.h"
#include "gearshift/prepare.h"
#include "prepare/bad_value.h"
#include "prepare/zero_points.h"

namespace gearshift {

namespace {

// One stored tensor of one expert: its bytes, and what an error about it must name.
struct Bound {
  const StoredTensor* stored = nullptr;
  const LayerSpec* layer = nullptr;
  std::string file;
  Shape shape;  // of the slice
  ByteView bytes;

  int64_t elements() const {
    int64_t product = 1;
    for (const int64_t extent : shape) product *= extent;
    return product;
  }
  ErrorInfo damaged(std::string found, std::string wanted) const {
    ErrorInfo error;
    error.code = ErrorCode::damaged_checkpoint;
    error.subject = fmt::format("{}: tensor {} (layer {})", file, stored->name, layer->name);
    error.found = std::move(found);
    error.wanted = std::move(wanted);
    error.hint = "the file is damaged, or its writer did not finish";
    return error;
  }
  // "at row 3, column 7": where element `index` stands; nothing for a scalar.
  std::string place(int64_t index) const {
    if (elements() <= 1 || shape.empty()) return "";
    const int64_t columns = elements() / shape[0];
    return columns <= 1 ? fmt::format(" at row {}", index)
                        : fmt::format(" at row {}, column {}", index / columns, index % columns);
  }
};

bool is_float_code(Format format) { return format <= Format::e3m2; }

class Binder {
 public:
  Binder(const Checkpoint& checkpoint, const LayerSpec& layer, int64_t expert, std::vector<std::string>* notes)
      : checkpoint_(checkpoint), layer_(layer), expert_(expert), notes_(notes) {}

  Result<LayerWeights> bind() const {
    LayerWeights weights;
    weights.spec = &layer_;
    const int64_t count = static_cast<int64_t>(layer_.modules.size());
    const int64_t experts = std::max<int64_t>(1, layer_.experts);
    const bool spread = layer_.kind == LayerKind::experts && !layer_.stacked;
    const int64_t parts = spread ? count / experts : count;
    if (expert_ < 0 || expert_ >= experts || parts == 0) {
      ErrorInfo error;
      error.code = ErrorCode::usage;
      error.subject = layer_.name;
      error.found = fmt::format("expert {}, {} modules", expert_, count);
      error.wanted = fmt::format("an expert below {} with a module of its own", experts);
      return error;
    }
    for (int64_t p = 0; p < parts; ++p) {
      const size_t index = static_cast<size_t>(spread ? expert_ * parts + p : p);
      GEARSHIFT_TRY(PartWeights part, bind_part(layer_.modules[index]));
      weights.parts.push_back(part);
    }
    return weights;
  }

  // The group index of `module`; empty where columns are in order.
  Result<ByteView> group_index(const Module& module) const {
    PartWeights part;
    for (const StoredTensor& stored : module.tensors) {
      if (stored.role != TensorRole::weight_group_index) continue;
      GEARSHIFT_TRY(const Bound bound, locate(stored));
      GEARSHIFT_CHECK(bind_group_index(bound, part));
    }
    return part.group_index;
  }

 private:
  Result<PartWeights> bind_part(const Module& module) const {
    PartWeights part;
    part.n = module.n;
    bool seen[static_cast<size_t>(TensorRole::bias) + 1] = {};
    for (const StoredTensor& stored : module.tensors) {
      GEARSHIFT_TRY(const Bound bound, locate(stored));
      if (stored.role == TensorRole::weight_shape) {
        GEARSHIFT_CHECK(check_stated_shape(bound, module));
      } else {
        GEARSHIFT_CHECK(bind_tensor(bound, part));
      }
      seen[static_cast<size_t>(stored.role)] = true;
    }
    const auto missing = [&](TensorRole role) { return !seen[static_cast<size_t>(role)]; };
    const Scheme& scheme = layer_.scheme;
    if (missing(TensorRole::weight)) return absent(module, "weight");
    if (scheme.quantized && missing(TensorRole::weight_scale)) return absent(module, "weight scale");
    if (scheme.weight.global_scale && missing(TensorRole::weight_global_scale))
      return absent(module, "global weight scale");
    if (!scheme.weight.symmetric && missing(TensorRole::weight_zero_point)) return absent(module, "weight zero point");
    if (scheme.weight.act_order && missing(TensorRole::weight_group_index)) return absent(module, "group index");
    if (scheme.activation && scheme.activation->stored_scale && missing(TensorRole::input_scale)) {
      return absent(module, "input scale");
    }
    return part;
  }

  Result<void> check_stated_shape(const Bound& bound, const Module& module) const {
    const std::string found = fmt::format("{{{}, {}}}", read_integer(bound, 0), read_integer(bound, 1));
    const std::string wanted = fmt::format("{{{}, {}}}", module.n, layer_.k);
    if (found == wanted) return {};
    return bound.damaged(found, wanted + ": the rows and columns of the packed weight");
  }
  static int64_t read_integer(const Bound& bound, size_t index) {
    if (bound.stored->dtype == DType::i32)
      return static_cast<int64_t>(read_number(bound.bytes, DType::i32, static_cast<int64_t>(index)));
    int64_t value = 0;
    std::memcpy(&value, bound.bytes.data() + 8 * index, sizeof value);
    return value;
  }

  ErrorInfo absent(const Module& module, std::string_view what) const {
    ErrorInfo error;
    error.code = ErrorCode::damaged_checkpoint;
    error.subject = fmt::format("module {} (layer {})", module.name, layer_.name);
    error.found = fmt::format("no {}", what);
    error.wanted = fmt::format("the {} that its scheme needs", what);
    return error;
  }

  Result<Bound> locate(const StoredTensor& stored) const {
    const TensorInfo* info = checkpoint_.find(stored.name);
    Bound bound;
    bound.stored = &stored;
    bound.layer = &layer_;
    bound.file = checkpoint_.path();
    if (info == nullptr) return bound.damaged("no such tensor", "the tensor that the layer was planned with");
    bound.file = checkpoint_.files()[static_cast<size_t>(info->file)].path;
    GEARSHIFT_TRY(bound.bytes, checkpoint_.bytes(*info));
    bound.shape = info->shape;
    // A stack holds its experts one after the other along the first axis; what all experts share has no such axis.
    if (layer_.stacked && !bound.shape.empty() && bound.shape[0] == layer_.experts && layer_.experts > 0) {
      const size_t bytes = bound.bytes.size() / static_cast<size_t>(layer_.experts);
      bound.bytes = bound.bytes.subspan(bytes * static_cast<size_t>(expert_), bytes);
      bound.shape.erase(bound.shape.begin());
    }
    return bound;
  }

  Result<void> bind_tensor(const Bound& bound, PartWeights& part) const {
    const DType stored = bound.stored->dtype;
    switch (bound.stored->role) {
      case TensorRole::weight:
        part.weight = bound.bytes;
        part.weight_dtype = stored;
        return check(bound, weight_values(stored), ValueRule::finite, "numbers");
      case TensorRole::weight_scale: {
        part.scale = bound.bytes;
        // One-byte scales are what the scheme says, whatever the header calls them (U8 exponents are e8m0).
        const DType wanted = layer_.scheme.weight.scale;
        part.scale_dtype = bits(stored) == 8 && bits(wanted) == 8 ? wanted : stored;
        return check(bound, part.scale_dtype, scale_rule(), "scales");
      }
      case TensorRole::weight_zero_point: {
        GEARSHIFT_CHECK(check(bound, stored, ValueRule::finite, "zero points"));
        if (layer_.scheme.weight.symmetric) {
          note(contradicting_zero_points(layer_, part.n, *bound.stored, bound.bytes));
          return {};
        }
        part.zero_point = bound.bytes;
        part.zero_point_dtype = stored;
        return {};
      }
      case TensorRole::weight_group_index:
        return bind_group_index(bound, part);
      case TensorRole::weight_global_scale:
        return read_scalar(bound, part.weight_global);
      case TensorRole::input_scale:
        return read_scalar(bound, part.input_scale);
      case TensorRole::input_zero_point: {
        if (bound.elements() != 1) return bound.damaged(to_string(bound.shape), "one number");
        const double value = read_number(bound.bytes, stored, 0);
        if (!(std::abs(value) <= 255)) return bound.damaged(fmt::format("{:g}", value), "an 8-bit zero point");
        part.input_zero_point = static_cast<int32_t>(value);
        return {};
      }
      case TensorRole::pre_scale:
        part.pre_scale = bound.bytes;
        part.pre_scale_dtype = stored;
        return check(bound, stored, ValueRule::finite, "numbers");
      case TensorRole::bias:
        part.bias = bound.bytes;
        part.bias_dtype = stored;
        return check(bound, stored, ValueRule::finite, "numbers");
      case TensorRole::weight_shape:
        return {};  // holds no part of the weights
      case TensorRole::low_rank_a:
      case TensorRole::low_rank_b: {
        ErrorInfo error = bound.damaged("a low-rank term", "a layer without one");
        error.code = ErrorCode::unsupported_scheme;
        error.hint = "no kernel adds the low-rank term; export the model without SVDQuant";
        return error;
      }
    }
    return {};
  }

  // The type whose NaN and infinity patterns the weight's bytes may hold.
  DType weight_values(DType stored) const {
    switch (layer_.scheme.weight.format) {
      case Format::float_:
        return stored;
      case Format::e4m3:
        return DType::f8_e4m3;
      case Format::e5m2:
        return DType::f8_e5m2;
      default:
        return DType::u8;  // every pattern is a number
    }
  }

  // Integer codes may come with negative scales (full-range symmetric quantization puts the sign of the extreme value
  // there); float codes never do, a sign is then a misread byte.
  ValueRule scale_rule() const {
    const WeightScheme& weight = layer_.scheme.weight;
    if (weight.grouping.kind == Grouping::Kind::tensor) return ValueRule::positive;
    return is_float_code(weight.format) ? ValueRule::not_negative : ValueRule::finite;
  }

  static Result<void> check(const Bound& bound, DType dtype, ValueRule rule, std::string_view what) {
    const auto bad = find_bad_value(bound.bytes, dtype, rule);
    if (!bad) return {};
    return bound.damaged(bad->found + bound.place(bad->index),
                         fmt::format("finite {}{}",
                                     rule == ValueRule::finite     ? ""
                                     : rule == ValueRule::positive ? "positive "
                                                                   : "non-negative ",
                                     what));
  }

  static Result<void> read_scalar(const Bound& bound, float& value) {
    if (bound.elements() != 1) return bound.damaged(to_string(bound.shape), "one number: [] or [1]");
    const DType dtype = bound.stored->dtype;
    switch (dtype) {
      case DType::f64:
      case DType::f32:
      case DType::f16:
      case DType::bf16:
        break;
      default:
        return bound.damaged(std::string(name(dtype)), "F32, F64, F16 or BF16");
    }
    GEARSHIFT_CHECK(check(bound, dtype, ValueRule::positive, "tensor-wide scale"));
    value = static_cast<float>(read_number(bound.bytes, dtype, 0));
    if (!std::isfinite(value) || value == 0)
      return bound.damaged(fmt::format("{:g}", read_number(bound.bytes, dtype, 0)), "a number that fp32 holds");
    return {};
  }

  Result<void> bind_group_index(const Bound& bound, PartWeights& part) const {
    const WeightScheme& weight = layer_.scheme.weight;
    if (bound.stored->dtype != DType::i32 || bound.elements() != layer_.k) {
      return bound.damaged(fmt::format("{} {}", name(bound.stored->dtype), to_string(bound.shape)),
                           fmt::format("I32 [{}]", layer_.k));
    }
    const auto at = [&](int64_t k) { return static_cast<int64_t>(read_number(bound.bytes, DType::i32, k)); };
    // compressed-tensors writes -1 where it has no order to tell; GPTQ's writers leave zeros, where several groups
    // exist.
    const bool gptq = weight.storage == Storage::gptq_v1 || weight.storage == Storage::gptq_v2;
    if (!gptq && layer_.k > 0 && at(0) == -1) return {};
    const int64_t group = weight.grouping.cols > 0 ? weight.grouping.cols : layer_.k;
    const int64_t groups = (layer_.k + group - 1) / group;
    const uint8_t* bytes = bound.bytes.data();
    if (gptq && groups > 1 && std::all_of(bytes, bytes + bound.bytes.size(), [](uint8_t byte) { return byte == 0; }))
      return {};
    bool in_order = true;
    for (int64_t k = 0; k < layer_.k; ++k) {
      in_order = in_order && at(k) == k / group;
      if (at(k) < 0 || at(k) >= groups) {
        return bound.damaged(fmt::format("group {} at column {}", at(k), k), fmt::format("groups 0 to {}", groups - 1));
      }
      if (!weight.act_order && at(k) != k / group) {
        return bound.damaged(fmt::format("group {} at column {}", at(k), k),
                             fmt::format("group {}, as the configuration says that columns are in order", k / group));
      }
    }
    if (!in_order) part.group_index = bound.bytes;
    return {};
  }

  void note(std::optional<std::string> sentence) const {
    if (notes_ != nullptr && sentence) notes_->push_back(*std::move(sentence));
  }

  const Checkpoint& checkpoint_;
  const LayerSpec& layer_;
  int64_t expert_;
  std::vector<std::string>* notes_;
};

}  // namespace

Result<LayerWeights> bind_weights(const Checkpoint& checkpoint, const LayerSpec& layer, int64_t expert,
                                  std::vector<std::string>* notes) {
  return Binder(checkpoint, layer, expert, notes).bind();
}

Result<bool> is_out_of_order(const Checkpoint& checkpoint, const LayerSpec& layer) {
  for (int64_t expert = 0; expert < (layer.stacked ? std::max<int64_t>(1, layer.experts) : 1); ++expert) {
    const Binder binder(checkpoint, layer, expert, nullptr);
    for (const Module& module : layer.modules) {
      GEARSHIFT_TRY(const ByteView index, binder.group_index(module));
      if (!index.empty()) return true;
    }
  }
  return false;
}

}  // namespace gearshift
