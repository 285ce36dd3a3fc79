// The tensors of a compressed-tensors module against its group's arguments (formats.md 2.2 to 2.4).
#include <bit>

#include "base/try.h"
#include "layer/scheme/compressed_tensors.h"
#include "layer/scheme/module_reader.h"

namespace gearshift::compressed_tensors {
namespace {

ErrorInfo unsupported(const Group& group, std::string_view key, std::string found, std::string wanted) {
  return ErrorInfo{ErrorCode::unsupported_scheme,
                   group.subject + "." + std::string(key),
                   "compressed-tensors " + std::move(found),
                   std::move(wanted),
                   "quantize the original float checkpoint with `gearshift quantize`",
                   {}};
}

std::string describe(const Arguments& arguments) {
  std::string text = std::to_string(arguments.bits) + "-bit " + (arguments.is_float ? "float" : "int");
  constexpr std::string_view kStrategies[] = {"tensor", "channel", "group", "block", "token", "tensor_group"};
  text += ", strategy " + std::string(kStrategies[static_cast<size_t>(arguments.strategy)]);
  if (arguments.group > 0) text += " " + std::to_string(arguments.group);
  return text;
}

bool is_nvfp4(const Arguments& a) {
  return a.is_float && a.bits == 4 && a.strategy == Strategy::tensor_group && a.group == 16;
}
bool is_mx(const Arguments& a, int64_t bits) {
  return a.is_float && a.bits == bits && a.strategy == Strategy::group && a.group == 32;
}

// Where the writer named no format, the arguments and, for integers, the tensors decide (`packed`).
Layout layout_of(const Group& group, bool packed) {
  const Arguments& weights = *group.weights;
  if (group.layout == Layout::naive && is_mx(weights, 8)) return Layout::mxfp8;  // the same tensors
  if (group.layout != Layout::by_arguments) return group.layout;
  if (is_nvfp4(weights)) return Layout::nvfp4;
  if (is_mx(weights, 4)) return Layout::mxfp4;
  if (is_mx(weights, 8)) return Layout::mxfp8;
  return !weights.is_float && packed ? Layout::packed : Layout::naive;
}

Result<Format> integer_format(const Group& group, int64_t bits) {
  if (bits < 2 || bits > 8)
    return unsupported(group, "weights.num_bits", std::to_string(bits) + "-bit integers", "2 to 8 bits");
  return static_cast<Format>(static_cast<int>(Format::int2) + static_cast<int>(bits - 2));
}

constexpr DTypes kE4m3 = {DType::f8_e4m3};

// ---- activations ----------------------------------------------------------------------------------------------------

Result<std::optional<ActivationScheme>> activation_of(const Group& group) {
  if (!group.input) return std::optional<ActivationScheme>{};
  const Arguments& input = *group.input;
  ActivationScheme scheme;
  scheme.symmetric = input.symmetric;
  scheme.dynamic = input.dynamic != Dynamic::no;
  if (is_nvfp4(input) && input.dynamic == Dynamic::local) {
    scheme.format = Format::e2m1;
    scheme.granularity = Granularity::token_group;
    scheme.group = 16;
    scheme.stored_scale = scheme.stored_multiplies = true;
    return std::optional{scheme};
  }
  const bool exponents = is_mx(input, 4) || is_mx(input, 8);
  if (exponents && input.dynamic == Dynamic::yes) {
    scheme.format = input.bits == 4 ? Format::e2m1 : Format::e4m3;
    scheme.granularity = Granularity::token_group;
    scheme.group = 32;
    scheme.rule = ScaleRule::e8m0_even;
    return std::optional{scheme};
  }
  const bool eight = input.bits == 8 && (!input.is_float || input.symmetric);
  const bool run_time =
      input.dynamic == Dynamic::yes && (input.strategy == Strategy::token || input.strategy == Strategy::tensor ||
                                        (input.strategy == Strategy::group && input.is_float));
  const bool stored = input.dynamic == Dynamic::no && input.strategy == Strategy::tensor;
  // A zero point made at run time over the whole of x: no kernel has that recipe.
  const bool no_recipe = run_time && !input.symmetric && input.strategy == Strategy::tensor;
  if (!eight || !(run_time || stored) || no_recipe) {
    return unsupported(group, "input_activations", "activations of " + describe(input),
                       "8-bit, NVFP4 or MX activations");
  }
  scheme.format = input.is_float ? Format::e4m3 : Format::int8;
  scheme.granularity = input.strategy == Strategy::token   ? Granularity::token
                       : input.strategy == Strategy::group ? Granularity::token_group
                                                           : Granularity::tensor;
  scheme.group = input.strategy == Strategy::group ? input.group : 0;
  scheme.stored_scale = stored;
  return std::optional{scheme};
}

Result<void> take_activation_tensors(ModuleReader& reader, const std::optional<ActivationScheme>& activation) {
  if (!activation || !activation->stored_scale) return {};
  if (activation->stored_multiplies) {
    GEARSHIFT_CHECK(reader.take(TensorRole::input_scale, "input_global_scale", {DType::f32}, {},
                                "the tensor-wide scale of NVFP4 activations, which the config asks for"));
    return {};
  }
  GEARSHIFT_CHECK(reader.take(TensorRole::input_scale, "input_scale", kFloatScales, {},
                              "the static activation scale that the config asks for"));
  if (activation->symmetric) {
    reader.skip("input_zero_point");
    return {};
  }
  GEARSHIFT_CHECK(reader.take(TensorRole::input_zero_point, "input_zero_point", {DType::i8}, {},
                              "the zero point of asymmetric static activations"));
  return {};
}

// ---- weights --------------------------------------------------------------------------------------------------------

// What a layout's reader finds: everything but the activations.
struct Weights {
  WeightScheme scheme;
  int64_t n = 0, k = 0;
};

// Grouping and the shape of the scales for N x K by strategy.
Result<Shape> scale_shape(const Group& group, int64_t n, int64_t k, Grouping* grouping) {
  const Arguments& weights = *group.weights;
  switch (weights.strategy) {
    case Strategy::tensor:
      *grouping = {Grouping::Kind::tensor, 1, 0};
      return Shape{};
    case Strategy::channel:
      *grouping = {Grouping::Kind::row, 1, 0};
      return Shape{n, 1};
    case Strategy::group:
      *grouping = {Grouping::Kind::group, 1, weights.group};
      return Shape{n, ceil_div(k, weights.group)};
    case Strategy::block:
      *grouping = {Grouping::Kind::block, weights.block_rows, weights.block_cols};
      return Shape{ceil_div(n, weights.block_rows), ceil_div(k, weights.block_cols)};
    default:
      return unsupported(group, "weights.strategy", "weights of " + describe(weights),
                         "tensor, channel, group or block");
  }
}

std::string scale_reason(const Group& group) {
  return "one scale per " + std::string(group.weights->strategy == Strategy::tensor    ? "tensor"
                                        : group.weights->strategy == Strategy::channel ? "row"
                                        : group.weights->strategy == Strategy::block
                                            ? std::to_string(group.weights->block_rows) + " x " +
                                                  std::to_string(group.weights->block_cols) + " block"
                                            : std::to_string(group.weights->group) + " columns");
}

Result<Weights> read_naive(ModuleReader& reader, const Group& group) {
  const Arguments& weights = *group.weights;
  const bool float_ok = weights.bits == 8 && weights.symmetric && weights.strategy != Strategy::group;
  if (weights.is_float && !float_ok) {
    return unsupported(group, "weights", "weights of " + describe(weights) + " in format \"" + group.format + "\"",
                       "8-bit floats with a scale per tensor, row or block");
  }
  if (!weights.is_float && weights.strategy == Strategy::block) {
    return unsupported(group, "weights", "weights of " + describe(weights), "a scale per tensor, row or group");
  }
  Weights read;
  const DType code = weights.is_float ? DType::f8_e4m3 : DType::i8;
  GEARSHIFT_TRY(const ModuleReader::Matrix matrix,
                reader.codes("weight", {code}, "the config asks for " + describe(weights)));
  read.n = matrix.rows;
  read.k = matrix.cols;
  read.scheme.format = Format::e4m3;
  if (!weights.is_float) {
    GEARSHIFT_TRY(read.scheme.format, integer_format(group, weights.bits));
  }
  GEARSHIFT_TRY(const Shape shape, scale_shape(group, read.n, read.k, &read.scheme.grouping));
  GEARSHIFT_TRY(read.scheme.scale,
                reader.take(TensorRole::weight_scale, "weight_scale", kFloatScales, shape, scale_reason(group)));
  read.scheme.symmetric = weights.symmetric;
  if (weights.symmetric) {
    reader.skip("weight_zero_point");  // removed on save; where one is left it is zero
  } else {
    GEARSHIFT_CHECK(reader.take(TensorRole::weight_zero_point, "weight_zero_point", {DType::i8}, shape,
                                "one zero point per scale: the weights are asymmetric"));
  }
  if (weights.group_index) {
    GEARSHIFT_TRY(const std::optional<DType> index,
                  reader.take_optional(TensorRole::weight_group_index, "weight_g_idx", {DType::i32}, {read.k},
                                       "one group index per column"));
    read.scheme.act_order = index.has_value();
  }
  return read;
}

// Columns of pack-quantized weights follow from the packed width only up to a word; the number of groups narrows it
// down, and real layers have widths that are multiples of large powers of two. Where the bytes are there, weight_shape
// says it.
struct Columns {
  int64_t k = 0;
  Storage storage = Storage::dense_bits;
};
int64_t roundest(int64_t low, int64_t high) {
  for (int64_t step = int64_t{1} << 40; step > 0; step >>= 1) {
    const int64_t k = high / step * step;
    if (k >= low && k > 0) return k;
  }
  return 0;
}

// `groups` and `group` are 0 where scales do not narrow the width down.
std::optional<Columns> packed_columns(int64_t words, int64_t bits, int64_t groups, int64_t group) {
  int64_t least = 1, most = int64_t{1} << 40;
  if (groups > 0) {
    least = (groups - 1) * group + 1;
    most = groups * group;
  }
  const int64_t per_word = 32 / bits;
  const int64_t dense = roundest(std::max(least, (words - 1) * 32 / bits + 1), std::min(most, words * 32 / bits));
  if (32 % bits == 0) return dense > 0 ? std::optional{Columns{dense, Storage::dense_bits}} : std::nullopt;
  const int64_t whole = roundest(std::max(least, (words - 1) * per_word + 1), std::min(most, words * per_word));
  const int dense_zeros = dense > 0 ? std::countr_zero(static_cast<uint64_t>(dense)) : -1;
  const int whole_zeros = whole > 0 ? std::countr_zero(static_cast<uint64_t>(whole)) : -1;
  if (dense_zeros == whole_zeros) return std::nullopt;  // both packings fit equally well, or neither does
  return dense_zeros > whole_zeros ? Columns{dense, Storage::dense_bits} : Columns{whole, Storage::word_bits};
}

// The same where the number of columns is known.
std::optional<Columns> packed_as(int64_t words, int64_t bits, int64_t k) {
  if (k <= 0 || k > (int64_t{1} << 40)) return std::nullopt;
  const bool dense = words == ceil_div(k * bits, 32), whole = words == ceil_div(k, 32 / bits);
  if (dense && whole && 32 % bits != 0) return std::nullopt;
  if (!dense && !whole) return std::nullopt;
  return Columns{k, dense ? Storage::dense_bits : Storage::word_bits};
}

Result<Weights> read_packed(ModuleReader& reader, const ModuleTensors& module, const Group& group) {
  const Arguments& weights = *group.weights;
  const bool known = weights.strategy == Strategy::tensor || weights.strategy == Strategy::channel ||
                     weights.strategy == Strategy::group;
  if (weights.is_float || !known) {
    return unsupported(group, "weights", "weights of " + describe(weights) + " in format \"" + group.format + "\"",
                       "integers with a scale per tensor, row or group");
  }
  Weights read;
  GEARSHIFT_TRY(read.scheme.format, integer_format(group, weights.bits));
  GEARSHIFT_TRY(const ModuleReader::Matrix matrix,
                reader.codes("weight_packed", {DType::i32}, "the config asks for " + describe(weights) + ", packed"));
  read.n = matrix.rows;

  int64_t groups = 0;
  if (weights.strategy == Strategy::group) {
    const TensorInfo* scale = module.find("weight_scale");
    const size_t rank = module.find("weight_packed")->shape.size();
    if (scale != nullptr && scale->shape.size() == rank && scale->shape.back() < (int64_t{1} << 31))
      groups = scale->shape.back();
  }
  std::optional<Columns> columns = packed_columns(matrix.cols, weights.bits, groups, weights.group);
  if (const TensorInfo* index = module.find("weight_g_idx");
      weights.group_index && index != nullptr && !index->shape.empty()) {
    columns = packed_as(matrix.cols, weights.bits, index->shape.back());
  }
  if (module.stated && module.stated->first == read.n) {
    const std::optional<Columns> stated = packed_as(matrix.cols, weights.bits, module.stated->second);
    const bool fits = stated && (groups == 0 || ceil_div(stated->k, weights.group) == groups);
    if (fits) columns = stated;
  }
  if (!columns) {
    return reader.contradiction(
        "weight_packed", "rows of " + std::to_string(matrix.cols) + " words",
        "a width that belongs to one number of " + std::to_string(weights.bits) + "-bit columns" +
            (groups > 0 ? " in " + std::to_string(groups) + " groups of " + std::to_string(weights.group) : ""));
  }
  read.k = columns->k;
  read.scheme.storage = columns->storage;

  GEARSHIFT_TRY(const Shape shape, scale_shape(group, read.n, read.k, &read.scheme.grouping));
  GEARSHIFT_TRY(read.scheme.scale,
                reader.take(TensorRole::weight_scale, "weight_scale", kFloatScales, shape, scale_reason(group)));
  read.scheme.symmetric = weights.symmetric;
  if (weights.symmetric) {
    reader.skip("weight_zero_point");
  } else if (weights.strategy == Strategy::tensor) {
    GEARSHIFT_CHECK(reader.take(TensorRole::weight_zero_point, "weight_zero_point", {DType::i8}, {}, "one zero point"));
  } else {
    const int64_t per_word = 32 / weights.bits;
    const int64_t rows =
        columns->storage == Storage::dense_bits ? ceil_div(read.n * weights.bits, 32) : ceil_div(read.n, per_word);
    GEARSHIFT_CHECK(reader.take(TensorRole::weight_zero_point, "weight_zero_point", {DType::i32}, {rows, shape[1]},
                                "zero points packed along the rows: the weights are asymmetric"));
  }
  if (weights.group_index && weights.strategy == Strategy::group) {
    GEARSHIFT_CHECK(reader.take(TensorRole::weight_group_index, "weight_g_idx", {DType::i32}, {read.k},
                                "one group index per column: actorder is \"group\""));
    read.scheme.act_order = true;
  }
  // A stack of experts may state one shape or one for each.
  if (module.find("weight_packed")->shape.size() > 2) {
    reader.skip("weight_shape");
  } else {
    GEARSHIFT_CHECK(reader.take(TensorRole::weight_shape, "weight_shape", {DType::i64, DType::i32}, {2},
                                "the rows and columns that are packed"));
  }
  return read;
}

// NVFP4, MXFP4 and MXFP8: fixed groups along K. Whole columns of two codes a byte for the 4-bit ones.
Result<Weights> read_blocks(ModuleReader& reader, const Group& group, Layout layout) {
  const Arguments& weights = *group.weights;
  const bool nvfp4 = layout == Layout::nvfp4, eight = layout == Layout::mxfp8;
  if (nvfp4 ? !is_nvfp4(weights) : !is_mx(weights, eight ? 8 : 4)) {
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     group.subject + ".weights",
                     describe(weights),
                     nvfp4   ? "4-bit float, strategy tensor_group 16: the format is NVFP4"
                     : eight ? "8-bit float, strategy group 32: the format is MXFP8"
                             : "4-bit float, strategy group 32: the format is MXFP4",
                     "",
                     {}};
  }
  Weights read;
  GEARSHIFT_TRY(const ModuleReader::Matrix matrix,
                eight ? reader.codes("weight", {DType::f8_e4m3}, "the config asks for MXFP8")
                      : reader.codes("weight_packed", {DType::u8},
                                     std::string("the config asks for ") + (nvfp4 ? "NVFP4" : "MXFP4")));
  const int64_t width = nvfp4 ? 16 : 32;
  read.n = matrix.rows;
  read.k = eight ? matrix.cols : 2 * matrix.cols;
  read.scheme.format = eight ? Format::e4m3 : Format::e2m1;
  read.scheme.storage = eight ? Storage::dense : Storage::nibbles;
  read.scheme.grouping = {Grouping::Kind::group, 1, width};
  read.scheme.scale = nvfp4 ? DType::f8_e4m3 : DType::f8_e8m0;
  GEARSHIFT_CHECK(reader.take(TensorRole::weight_scale, "weight_scale", nvfp4 ? kE4m3 : kExponentScales,
                              {read.n, ceil_div(read.k, width)}, scale_reason(group)));
  if (nvfp4) {
    read.scheme.global_scale = read.scheme.global_divides = true;
    GEARSHIFT_CHECK(reader.take(TensorRole::weight_global_scale, "weight_global_scale", {DType::f32}, {},
                                "the tensor-wide scale of NVFP4 weights"));
  }
  return read;
}

Result<Weights> read_weights(ModuleReader& reader, const ModuleTensors& module, const Group& group) {
  const Layout layout = layout_of(group, reader.has("weight_packed"));
  switch (layout) {
    case Layout::packed:
      return read_packed(reader, module, group);
    case Layout::nvfp4:
    case Layout::mxfp4:
    case Layout::mxfp8:
      return read_blocks(reader, group, layout);
    default:
      return read_naive(reader, group);
  }
}

}  // namespace

Result<ModuleScheme> read_module(const ModuleTensors& module, const Group& group) {
  ModuleReader reader(module);
  Scheme scheme;
  scheme.quantized = true;
  GEARSHIFT_TRY(scheme.activation, activation_of(group));
  GEARSHIFT_TRY(const Weights weights, read_weights(reader, module, group));
  scheme.weight = weights.scheme;
  GEARSHIFT_CHECK(take_activation_tensors(reader, scheme.activation));
  return reader.finish(scheme, weights.n, weights.k);
}

Result<std::vector<ExpectedTensor>> expected_tensors(const Group& group, int64_t n, int64_t k) {
  const Arguments& weights = *group.weights;
  GEARSHIFT_TRY(const std::optional<ActivationScheme> activation, activation_of(group));
  // Integers with quantized activations are stored as bytes.
  const Layout layout = layout_of(group, weights.bits < 8 || !activation);
  const bool packed = layout == Layout::packed, nvfp4 = layout == Layout::nvfp4, mxfp4 = layout == Layout::mxfp4;
  std::vector<ExpectedTensor> tensors;
  if (packed) {
    tensors.push_back({"weight_packed", DType::i32, {n, ceil_div(k * weights.bits, 32)}});
    tensors.push_back({"weight_shape", DType::i64, {2}});
  } else if (nvfp4 || mxfp4) {
    tensors.push_back({"weight_packed", DType::u8, {n, k / 2}});
  } else {
    tensors.push_back({"weight", weights.is_float ? DType::f8_e4m3 : DType::i8, {n, k}});
  }
  if (nvfp4) {
    tensors.push_back({"weight_scale", DType::f8_e4m3, {n, ceil_div(k, 16)}});
    tensors.push_back({"weight_global_scale", DType::f32, {1}});
  } else if (mxfp4 || layout == Layout::mxfp8) {
    tensors.push_back({"weight_scale", DType::u8, {n, ceil_div(k, 32)}});
  } else {
    Grouping grouping;
    GEARSHIFT_TRY(const Shape scales, scale_shape(group, n, k, &grouping));
    tensors.push_back({"weight_scale", DType::bf16, scales});
    const bool rows = packed && scales.size() == 2;  // zero points are packed along the rows, too
    if (!weights.symmetric) {
      tensors.push_back({"weight_zero_point", rows ? DType::i32 : DType::i8,
                         rows ? Shape{ceil_div(n * weights.bits, 32), scales[1]} : scales});
    }
    if (weights.group_index) tensors.push_back({"weight_g_idx", DType::i32, {k}});
  }
  if (activation && activation->stored_scale) {
    tensors.push_back({activation->stored_multiplies ? "input_global_scale" : "input_scale",
                       activation->stored_multiplies ? DType::f32 : DType::bf16,
                       {1}});
    if (!activation->symmetric) tensors.push_back({"input_zero_point", DType::i8, {1}});
  }
  return tensors;
}

}  // namespace gearshift::compressed_tensors
