// The tensors of an FP8 module (formats.md 4.2, 4.4, 4.5, 4.6).
#include <algorithm>

#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/fp8.h"
#include "layer/scheme/module_reader.h"

namespace gearshift::fp8 {
namespace {

// The same tensor under the names of different writers. All of them multiply, the ones called "inv", too.
constexpr std::string_view kWeightScales[] = {"weight_scale_inv", "weight_scale", "scale", "qscale_weight"};
constexpr std::string_view kInputScales[] = {"input_scale", "activation_scale", "qscale_act"};
constexpr DTypes kAnyScales = {DType::f32, DType::bf16, DType::f16, DType::f8_e8m0, DType::u8, DType::i8};

template <size_t count>
std::string_view first_present(const ModuleReader& reader, const std::string_view (&names)[count],
                               std::string_view otherwise) {
  const auto* found =
      std::find_if(std::begin(names), std::end(names), [&](std::string_view name) { return reader.has(name); });
  return found == std::end(names) ? otherwise : *found;
}

bool is_exponent(DType dtype) { return dtype == DType::f8_e8m0 || dtype == DType::u8 || dtype == DType::i8; }

// Stacks that keep the order of x @ W: [experts, K, N] with scales [experts, 1, N].
bool is_transposed(const TensorInfo* weight, const TensorInfo* scale) {
  return weight != nullptr && scale != nullptr && weight->shape.size() == 3 && scale->shape.size() == 3 &&
         scale->shape[1] == 1 && scale->shape[2] == weight->shape[2] && scale->shape[2] != 1;
}

// One scale per row instead of one per tensor: the exporters' choice shows in the number of scales only.
bool is_per_row(const TensorInfo* scale, int64_t experts, int64_t rows) {
  if (scale == nullptr || rows <= 1) return false;
  const int64_t rest = std::count(scale->shape.begin(), scale->shape.end(), rows);
  const bool has_rows = rest > (experts == rows ? 1 : 0);
  return has_rows && std::all_of(scale->shape.begin(), scale->shape.end(),
                                 [&](int64_t d) { return d == 1 || d == rows || d == experts; });
}

// Activations are e4m3 also beside e5m2 weights: they are rounded once and have a scale of their own, so that they need
// digits rather than range (and no matrix unit multiplies e5m2 by e5m2).
ActivationScheme run_time_activation(const Arguments& arguments) {
  ActivationScheme scheme;
  scheme.format = Format::e4m3;
  scheme.rule = arguments.rule;
  scheme.amax_limit = arguments.amax_limit;
  scheme.granularity = arguments.tensor_activations     ? Granularity::tensor
                       : arguments.activation_group > 0 ? Granularity::token_group
                                                        : Granularity::token;
  scheme.group = scheme.granularity == Granularity::token_group ? arguments.activation_group : 0;
  return scheme;
}

Result<std::optional<ActivationScheme>> take_activation(ModuleReader& reader, const Arguments& arguments) {
  if (arguments.weight_only) return std::optional<ActivationScheme>{};
  if (!arguments.static_activations) return std::optional{run_time_activation(arguments)};
  ActivationScheme scheme;
  scheme.format = Format::e4m3;
  scheme.dynamic = false;
  scheme.granularity = Granularity::tensor;
  scheme.stored_scale = true;
  GEARSHIFT_CHECK(reader.take(TensorRole::input_scale, first_present(reader, kInputScales, "input_scale"), kFloatScales,
                              {}, "the static activation scale that the config asks for"));
  return std::optional{scheme};
}

// The grouping of blocks, and the shape of their scales. One row of 32 columns with an exponent is MXFP8.
Result<WeightScheme> take_block_scales(ModuleReader& reader, const Arguments& arguments, std::string_view suffix,
                                       int64_t n, int64_t k) {
  WeightScheme weight;
  const std::string why =
      "one scale per " + std::to_string(arguments.block_rows) + " x " + std::to_string(arguments.block_cols) + " block";
  GEARSHIFT_TRY(const DType dtype,
                reader.take(TensorRole::weight_scale, suffix, kAnyScales,
                            {ceil_div(n, arguments.block_rows), ceil_div(k, arguments.block_cols)}, why));
  weight.scale = is_exponent(dtype) ? DType::f8_e8m0 : dtype;
  const bool mx = is_exponent(dtype) && arguments.block_rows == 1;
  weight.grouping = {mx ? Grouping::Kind::group : Grouping::Kind::block, arguments.block_rows, arguments.block_cols};
  return weight;
}

}  // namespace

Result<ModuleScheme> read_module(const ModuleTensors& module, const Arguments& arguments) {
  ModuleReader reader(module);
  const DType code = arguments.format == Format::e5m2 ? DType::f8_e5m2 : DType::f8_e4m3;
  GEARSHIFT_TRY(const ModuleReader::Matrix w,
                reader.codes("weight", {code}, "the config says that this module is " + arguments.word));
  int64_t n = w.rows, k = w.cols;
  const bool blocks = arguments.block_rows > 0;
  const std::string_view suffix = first_present(reader, kWeightScales, blocks ? "weight_scale_inv" : "weight_scale");
  Scheme scheme;
  scheme.quantized = true;
  if (blocks) {
    GEARSHIFT_TRY(scheme.weight, take_block_scales(reader, arguments, suffix, n, k));
  } else {
    const TensorInfo* weight = module.find("weight");
    const TensorInfo* scale = module.find(suffix);
    Shape shape;
    if (is_transposed(weight, scale)) {
      std::swap(n, k);
      scheme.weight.storage = Storage::dense_transposed;
      scheme.weight.grouping = {Grouping::Kind::row, 1, 0};
      shape = {1, n};
    } else if (is_per_row(scale, weight->shape.size() == 3 ? weight->shape[0] : 1, n)) {
      scheme.weight.grouping = {Grouping::Kind::row, 1, 0};
      shape = {n, 1};
    }
    GEARSHIFT_TRY(scheme.weight.scale,
                  reader.take(TensorRole::weight_scale, suffix, kFloatScales, shape,
                              shape.empty() ? "one scale per tensor (or per row)" : "one scale per row"));
  }
  scheme.weight.format = arguments.format;
  GEARSHIFT_TRY(scheme.activation, take_activation(reader, arguments));
  return reader.finish(scheme, n, k);
}

Result<ModuleScheme> read_fp4_module(const ModuleTensors& module) {
  ModuleReader reader(module);
  GEARSHIFT_TRY(const ModuleReader::Matrix w, reader.codes("weight", {DType::i8, DType::u8}, "packed FP4 experts"));
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight.format = Format::e2m1;
  scheme.weight.storage = Storage::nibbles;
  scheme.weight.grouping = {Grouping::Kind::group, 1, 32};
  scheme.weight.scale = DType::f8_e8m0;
  const int64_t k = 2 * w.cols;
  GEARSHIFT_CHECK(reader.take(TensorRole::weight_scale, first_present(reader, kWeightScales, "scale"), kExponentScales,
                              {w.rows, ceil_div(k, 32)}, "one exponent per 32 columns"));
  return reader.finish(scheme, w.rows, k);
}

std::vector<ExpectedTensor> expected_tensors(const Arguments& arguments, int64_t n, int64_t k, bool rows) {
  std::vector<ExpectedTensor> tensors = {
      {"weight", arguments.format == Format::e5m2 ? DType::f8_e5m2 : DType::f8_e4m3, {n, k}}};
  if (arguments.block_rows > 0) {
    const Shape blocks = {ceil_div(n, arguments.block_rows), ceil_div(k, arguments.block_cols)};
    tensors.push_back({"weight_scale_inv", arguments.block_rows == 1 ? DType::f8_e8m0 : DType::f32, blocks});
  } else {
    tensors.push_back({"weight_scale", DType::f32, rows ? Shape{n, 1} : Shape{}});
  }
  if (arguments.static_activations && !arguments.weight_only) tensors.push_back({"input_scale", DType::f32, {}});
  return tensors;
}

std::vector<ExpectedTensor> expected_fp4_tensors(int64_t n, int64_t k) {
  return {{"weight", DType::i8, {n, k / 2}}, {"scale", DType::f8_e8m0, {n, ceil_div(k, 32)}}};
}

}  // namespace gearshift::fp8
