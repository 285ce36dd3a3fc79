// The tensors of a Quark module by its specifications (formats.md 8).
#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/fp8.h"
#include "layer/scheme/module_reader.h"
#include "layer/scheme/quark.h"

namespace gearshift::quark {
namespace {

Format format_of(Element element) {
  switch (element) {
    case Element::e4m3:
      return Format::e4m3;
    case Element::e5m2:
      return Format::e5m2;
    case Element::e2m1:
      return Format::e2m1;
    case Element::e2m3:
      return Format::e2m3;
    case Element::e3m2:
      return Format::e3m2;
    case Element::int8:
      return Format::int8;
    case Element::int4:
      return Format::int4;
    case Element::uint4:
      return Format::uint4;
  }
  return Format::float_;
}

bool is_fp8(const TensorSpec& spec) { return spec.element == Element::e4m3 || spec.element == Element::e5m2; }
bool is_mx(const TensorSpec& spec) {
  return spec.exponents && spec.granularity == Granularity::per_group && spec.group == 32;
}

std::string describe(const TensorSpec& spec) {
  constexpr std::string_view kWords[] = {"per_tensor", "per_channel", "per_group", "per_block"};
  std::string text = "quark " + spec.word + " " + std::string(kWords[static_cast<size_t>(spec.granularity)]);
  if (spec.group > 0) text += " " + std::to_string(spec.group);
  return text;
}

ErrorInfo unsupported_weights(const LayerSpecs& specs) {
  return unsupported_scheme(specs.subject + ".weight", describe(*specs.weight),
                            "FP8, INT8, INT4, MXFP4, MXFP6, MXFP8 or NVFP4 weights");
}

Result<std::optional<ActivationScheme>> activation_of(const LayerSpecs& specs) {
  if (!specs.input) return std::optional<ActivationScheme>{};
  const TensorSpec& input = *specs.input;
  ActivationScheme scheme;
  scheme.format = format_of(input.element);
  scheme.dynamic = input.dynamic;
  if (input.two_levels) {  // NVFP4: blocks at run time below a stored scale
    scheme.dynamic = true;
    scheme.granularity = gearshift::Granularity::token_group;
    scheme.group = 16;
    scheme.stored_scale = true;
    return std::optional{scheme};
  }
  if (is_mx(input) && input.dynamic && input.element != Element::int8) {
    scheme.granularity = gearshift::Granularity::token_group;
    scheme.group = 32;
    scheme.rule = input.rule;
    return std::optional{scheme};
  }
  const bool eight = input.element == Element::e4m3 || input.element == Element::int8;
  const bool grouped = input.granularity == Granularity::per_group && input.element == Element::e4m3;
  const bool known = input.dynamic ? input.granularity != Granularity::per_block &&
                                         (input.granularity != Granularity::per_group || grouped)
                                   : input.granularity == Granularity::per_tensor;
  // A zero point made at run time over the whole of x: no kernel has that recipe.
  const bool no_recipe = input.dynamic && input.element == Element::int8 && !input.symmetric &&
                         input.granularity == Granularity::per_tensor;
  if (!eight || !known || no_recipe || input.exponents) {
    return unsupported_scheme(specs.subject + ".input_tensors",
                              std::string(input.dynamic ? "dynamic " : "static ") + describe(input),
                              "FP8, INT8, MX or NVFP4 activations");
  }
  scheme.symmetric = input.symmetric || input.element != Element::int8;
  scheme.stored_scale = !input.dynamic;
  scheme.granularity = grouped                                        ? gearshift::Granularity::token_group
                       : input.granularity == Granularity::per_tensor ? gearshift::Granularity::tensor
                                                                      : gearshift::Granularity::token;
  scheme.group = grouped ? input.group : 0;
  return std::optional{scheme};
}

Result<void> take_activation_tensors(ModuleReader& reader, const std::optional<ActivationScheme>& activation) {
  if (!activation || !activation->stored_scale) return {};
  const std::string_view suffix = reader.has("input_scale_2") ? "input_scale_2" : "input_scale";
  GEARSHIFT_CHECK(
      reader.take(TensorRole::input_scale, suffix, kFloatScales, {}, "the activation scale that the config asks for"));
  if (activation->symmetric) {
    reader.skip("input_zero_point");  // zero where it is stored
    return {};
  }
  GEARSHIFT_CHECK(reader.take(TensorRole::input_zero_point, "input_zero_point", {DType::i8, DType::i32, DType::u8}, {},
                              "the zero point of asymmetric static activations"));
  return {};
}

// What the readers below find: everything but the activations.
struct Weights {
  WeightScheme scheme;
  int64_t n = 0, k = 0;
};

Result<Weights> read_int8(ModuleReader& reader, const LayerSpecs& specs) {
  const TensorSpec& spec = *specs.weight;
  if (spec.granularity != Granularity::per_tensor && spec.granularity != Granularity::per_channel)
    return unsupported_weights(specs);
  const bool rows = spec.granularity == Granularity::per_channel;
  GEARSHIFT_TRY(const ModuleReader::Matrix w,
                reader.codes("weight", {DType::i8}, "the config asks for " + describe(spec)));
  Weights read{{}, w.rows, w.cols};
  const Shape shape = rows ? Shape{w.rows, 1} : Shape{};
  read.scheme.grouping = {rows ? Grouping::Kind::row : Grouping::Kind::tensor, 1, 0};
  read.scheme.symmetric = spec.symmetric;
  GEARSHIFT_TRY(read.scheme.scale, reader.take(TensorRole::weight_scale, "weight_scale", kFloatScales, shape,
                                               rows ? "one scale per row" : "one scale per tensor"));
  if (spec.symmetric) {
    reader.skip("weight_zero_point");  // zeros where it is stored
  } else {
    GEARSHIFT_CHECK(reader.take(TensorRole::weight_zero_point, "weight_zero_point", {DType::i8, DType::i32, DType::u8},
                                shape, "one zero point per scale"));
  }
  return read;
}

Result<Weights> read_int4(ModuleReader& reader, const ModuleTensors& module, const LayerSpecs& specs, bool reordered) {
  const TensorSpec& spec = *specs.weight;
  if (spec.granularity == Granularity::per_block) return unsupported_weights(specs);
  GEARSHIFT_TRY(const ModuleReader::Matrix w,
                reader.codes("weight", {DType::i32}, "the config asks for " + describe(spec)));
  const TensorInfo* scales = module.find("weight_scale");
  const int64_t columns = scales != nullptr && !scales->shape.empty() ? scales->shape.back() : 0;
  const bool partial = columns > 0 && columns < w.cols * 8 && ceil_div(columns, 8) == w.cols;
  Weights read{{}, partial ? columns : w.cols * 8, w.rows};
  read.scheme.storage = reordered ? Storage::quark_reorder : Storage::quark_order;
  read.scheme.symmetric = spec.symmetric;
  const bool grouped = spec.granularity == Granularity::per_group;
  const bool single = spec.granularity == Granularity::per_tensor;
  const int64_t groups = grouped ? ceil_div(read.k, spec.group) : 1;
  read.scheme.grouping = grouped  ? Grouping{Grouping::Kind::group, 1, spec.group}
                         : single ? Grouping{Grouping::Kind::tensor, 1, 0}
                                  : Grouping{Grouping::Kind::row, 1, 0};
  GEARSHIFT_TRY(read.scheme.scale,
                reader.take(TensorRole::weight_scale, "weight_scale", kFloatScales,
                            single ? Shape{} : Shape{groups, read.n}, "scales of " + describe(spec)));
  if (spec.symmetric) {
    reader.skip("weight_zero_point");
  } else {
    GEARSHIFT_CHECK(reader.take(TensorRole::weight_zero_point, "weight_zero_point", {DType::i32}, {groups, w.cols},
                                "one packed zero point per scale"));
  }
  return read;
}

// MXFP4, MXFP6, MXFP8 and NVFP4.
Result<Weights> read_blocks(ModuleReader& reader, const LayerSpecs& specs) {
  const TensorSpec& spec = *specs.weight;
  if (!spec.two_levels && !is_mx(spec)) return unsupported_weights(specs);
  const int bits_of_code = bits(format_of(spec.element));
  GEARSHIFT_TRY(const ModuleReader::Matrix w,
                bits_of_code == 8
                    ? reader.codes("weight", {spec.element == Element::e5m2 ? DType::f8_e5m2 : DType::f8_e4m3},
                                   "the config asks for " + describe(spec))
                    : reader.codes("weight", {DType::u8}, "the config asks for " + describe(spec) + ", packed"));
  if (bits_of_code == 6 && w.cols % 3 != 0) {
    return reader.contradiction("weight", "rows of " + std::to_string(w.cols) + " bytes",
                                "a multiple of 3 bytes: four 6-bit codes in three bytes");
  }
  Weights read{{}, w.rows, w.cols * 8 / bits_of_code};
  read.scheme.storage = bits_of_code == 8 ? Storage::dense : bits_of_code == 6 ? Storage::fp6_bytes : Storage::nibbles;
  read.scheme.grouping = {Grouping::Kind::group, 1, spec.group};
  read.scheme.scale = spec.two_levels ? DType::f8_e4m3 : DType::f8_e8m0;
  const Shape shape = {read.n, ceil_div(read.k, spec.group)};
  const std::string why = "one scale per " + std::to_string(spec.group) + " columns";
  if (!spec.two_levels) {
    GEARSHIFT_CHECK(reader.take(TensorRole::weight_scale, "weight_scale", kExponentScales, shape, why));
    return read;
  }
  read.scheme.global_scale = true;
  GEARSHIFT_CHECK(reader.take(TensorRole::weight_scale, "weight_scale", {DType::f8_e4m3}, shape, why));
  GEARSHIFT_CHECK(reader.take(TensorRole::weight_global_scale, "weight_scale_2", {DType::f32}, {},
                              "the tensor-wide scale of NVFP4"));
  return read;
}

// FP8 with float scales: the tensors of quant_method "fp8".
Result<ModuleScheme> read_fp8(const ModuleTensors& module, const LayerSpecs& specs,
                              const std::optional<ActivationScheme>& activation) {
  const TensorSpec& spec = *specs.weight;
  if (spec.granularity == Granularity::per_group) return unsupported_weights(specs);
  if (activation && activation->format != Format::e4m3) {
    return unsupported_scheme(specs.subject + ".input_tensors", describe(*specs.input) + " beside FP8 weights",
                              "FP8 activations");
  }
  fp8::Arguments arguments;
  arguments.word = "FP8";
  arguments.format = format_of(spec.element);
  arguments.block_rows = spec.block_rows;
  arguments.block_cols = spec.block_cols;
  arguments.weight_only = !activation;
  if (activation) {
    arguments.static_activations = !activation->dynamic;
    arguments.tensor_activations = activation->granularity == gearshift::Granularity::tensor;
    arguments.activation_group = activation->group;
  }
  GEARSHIFT_TRY(ModuleScheme read, fp8::read_module(module, arguments));
  const bool rows = read.scheme.weight.grouping.kind == Grouping::Kind::row;
  if (spec.granularity != Granularity::per_block && read.n > 1 &&
      rows != (spec.granularity == Granularity::per_channel)) {
    const TensorInfo* scale = module.find("weight_scale");
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     scale != nullptr ? scale->name : module.name,
                     rows ? "one scale per row" : "one scale",
                     describe(spec) + ", as " + specs.subject + ".weight says",
                     "",
                     {}};
  }
  return read;
}

}  // namespace

Result<ModuleScheme> read_module(const ModuleTensors& module, const LayerSpecs& specs, bool reordered) {
  const TensorSpec& spec = *specs.weight;
  GEARSHIFT_TRY(const std::optional<ActivationScheme> activation, activation_of(specs));
  if (is_fp8(spec) && !is_mx(spec)) return read_fp8(module, specs, activation);
  ModuleReader reader(module);
  Weights weights;
  if (spec.element == Element::int8) {
    GEARSHIFT_TRY(weights, read_int8(reader, specs));
  } else if (spec.element == Element::int4 || spec.element == Element::uint4) {
    GEARSHIFT_TRY(weights, read_int4(reader, module, specs, reordered));
  } else {
    GEARSHIFT_TRY(weights, read_blocks(reader, specs));
  }
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight = weights.scheme;
  scheme.weight.format = format_of(spec.element);
  scheme.activation = activation;
  GEARSHIFT_CHECK(take_activation_tensors(reader, activation));
  return reader.finish(scheme, weights.n, weights.k);
}

std::vector<ExpectedTensor> expected_tensors(const LayerSpecs& specs, int64_t n, int64_t k) {
  const TensorSpec& spec = *specs.weight;
  const int64_t groups = spec.group > 0 ? ceil_div(k, spec.group) : 1;
  const bool rows = spec.granularity == Granularity::per_channel;
  std::vector<ExpectedTensor> tensors;
  if (spec.element == Element::int4 || spec.element == Element::uint4) {
    const bool single = spec.granularity == Granularity::per_tensor;
    tensors = {{"weight", DType::i32, {k, ceil_div(n, 8)}},
               {"weight_scale", DType::f32, single ? Shape{} : Shape{groups, n}}};
    if (!spec.symmetric) tensors.push_back({"weight_zero_point", DType::i32, {groups, ceil_div(n, 8)}});
  } else if (spec.element == Element::int8) {
    const Shape scales = rows ? Shape{n, 1} : Shape{};
    tensors = {{"weight", DType::i8, {n, k}}, {"weight_scale", DType::f32, scales}};
    if (!spec.symmetric) tensors.push_back({"weight_zero_point", DType::i8, scales});
  } else if (spec.two_levels || is_mx(spec)) {
    const int64_t bits_of_code = bits(format_of(spec.element));
    const DType eight = spec.element == Element::e5m2 ? DType::f8_e5m2 : DType::f8_e4m3;
    tensors = {{"weight", bits_of_code == 8 ? eight : DType::u8, {n, k * bits_of_code / 8}},
               {"weight_scale", spec.two_levels ? DType::f8_e4m3 : DType::u8, {n, groups}}};
    if (spec.two_levels) tensors.push_back({"weight_scale_2", DType::f32, {}});
  } else {
    fp8::Arguments arguments;
    arguments.format = format_of(spec.element);
    arguments.block_rows = spec.block_rows;
    arguments.block_cols = spec.block_cols;
    tensors = fp8::expected_tensors(arguments, n, k, rows);
  }
  if (!specs.input || (specs.input->dynamic && !specs.input->two_levels)) return tensors;
  tensors.push_back({specs.input->two_levels ? "input_scale_2" : "input_scale", DType::f32, {}});
  if (specs.input->element == Element::int8 && !specs.input->symmetric)
    tensors.push_back({"input_zero_point", DType::i8, {}});
  return tensors;
}

}  // namespace gearshift::quark
