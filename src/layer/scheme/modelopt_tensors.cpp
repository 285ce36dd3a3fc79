// The tensors of a ModelOpt module by its algorithm (formats.md 3.2, 3.3).
#include "base/try.h"
#include "layer/scheme/modelopt.h"
#include "layer/scheme/module_reader.h"

namespace gearshift::modelopt {
namespace {

constexpr DTypes kE4m3 = {DType::f8_e4m3};

ActivationScheme activation(Format format, Granularity granularity, bool dynamic, int64_t group = 0) {
  ActivationScheme scheme;
  scheme.format = format;
  scheme.granularity = granularity;
  scheme.dynamic = dynamic;
  scheme.group = group;
  scheme.stored_scale = !dynamic;
  return scheme;
}

Result<void> take_input_scale(ModuleReader& reader, const std::string& word) {
  GEARSHIFT_CHECK(
      reader.take(TensorRole::input_scale, "input_scale", kFloatScales, {}, "the activation scale of " + word));
  return {};
}

Result<void> take_pre_scale(ModuleReader& reader, int64_t k, Scheme* scheme) {
  GEARSHIFT_TRY(const std::optional<DType> pre,
                reader.take_optional(TensorRole::pre_scale, "pre_quant_scale", kFloatScales, {k},
                                     "one activation factor per column"));
  scheme->pre_scale = pre.has_value();
  return {};
}

// What the readers below share.
struct Job {
  ModuleReader& reader;
  const Layer& layer;
  bool weight_only;
};

Result<ModuleScheme> read_fp8(const Job& job) {
  ModuleReader& reader = job.reader;
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight.format = Format::e4m3;
  GEARSHIFT_TRY(const ModuleReader::Matrix w, reader.codes("weight", kE4m3, job.layer.word));
  if (job.layer.algorithm == Algorithm::fp8) {
    scheme.weight.grouping = {Grouping::Kind::tensor, 1, 0};
    GEARSHIFT_TRY(scheme.weight.scale,
                  reader.take(TensorRole::weight_scale, "weight_scale", kFloatScales, {}, "one scale per tensor"));
    scheme.activation = activation(Format::e4m3, Granularity::tensor, false);
    GEARSHIFT_CHECK(take_input_scale(reader, job.layer.word));
  } else if (job.layer.algorithm == Algorithm::fp8_per_channel) {
    scheme.weight.grouping = {Grouping::Kind::row, 1, 0};
    GEARSHIFT_TRY(scheme.weight.scale,
                  reader.take(TensorRole::weight_scale, "weight_scale", kFloatScales, {w.rows}, "one scale per row"));
    scheme.activation = activation(Format::e4m3, Granularity::token, true);
  } else {  // FP8_PB_WO: "weight only", so activations stay 16-bit
    scheme.weight.grouping = {Grouping::Kind::block, 128, 128};
    GEARSHIFT_TRY(scheme.weight.scale,
                  reader.take(TensorRole::weight_scale, "weight_scale", kFloatScales,
                              {ceil_div(w.rows, 128), 1, ceil_div(w.cols, 128), 1}, "one scale per 128 x 128 block"));
  }
  return reader.finish(scheme, w.rows, w.cols);
}

// Stacks that keep the order of x @ W have K before N in every tensor ("BMM" experts).
bool is_transposed(const ModuleTensors& module) {
  const TensorInfo* weight = module.find("weight");
  const TensorInfo* scale = module.find("weight_scale");
  return weight != nullptr && scale != nullptr && weight->shape.size() == 3 && scale->shape.size() == 3 &&
         weight->shape[2] == scale->shape[2];
}

Result<ModuleScheme> read_nvfp4(const Job& job) {
  ModuleReader& reader = job.reader;
  const Algorithm algorithm = job.layer.algorithm;
  Scheme scheme;
  scheme.quantized = true;
  const int64_t group = job.layer.group > 0 ? job.layer.group : 16;
  GEARSHIFT_TRY(const ModuleReader::Matrix w, reader.codes("weight", {DType::u8}, job.layer.word));
  const int64_t k = 2 * w.cols;
  scheme.weight.format = Format::e2m1;
  scheme.weight.storage = Storage::nibbles;
  scheme.weight.grouping = {Grouping::Kind::group, 1, group};
  scheme.weight.scale = DType::f8_e4m3;
  scheme.weight.global_scale = true;
  GEARSHIFT_CHECK(reader.take(TensorRole::weight_scale, "weight_scale", kE4m3, {w.rows, ceil_div(k, group)},
                              "one scale per " + std::to_string(group) + " columns"));
  GEARSHIFT_CHECK(reader.take(TensorRole::weight_global_scale, "weight_scale_2", {DType::f32}, {},
                              "the tensor-wide scale of " + job.layer.word));
  GEARSHIFT_CHECK(take_pre_scale(reader, k, &scheme));
  if (algorithm == Algorithm::nvfp4) {
    scheme.activation = activation(Format::e2m1, Granularity::token_group, true, group);
    scheme.activation->stored_scale = true;
    GEARSHIFT_CHECK(take_input_scale(reader, job.layer.word));
  } else if (algorithm == Algorithm::nvfp4_fp8) {
    scheme.activation = activation(Format::e4m3, Granularity::tensor, false);
    GEARSHIFT_CHECK(take_input_scale(reader, job.layer.word));
  } else {
    reader.skip("input_scale");  // weight-only: one that was left behind means nothing
  }
  return reader.finish(scheme, w.rows, k);
}

Result<ModuleScheme> read_mx(const Job& job) {
  ModuleReader& reader = job.reader;
  const bool eight = job.layer.algorithm == Algorithm::mxfp8;
  Scheme scheme;
  scheme.quantized = true;
  GEARSHIFT_TRY(const ModuleReader::Matrix w, eight ? reader.codes("weight", kE4m3, job.layer.word)
                                                    : reader.codes("weight", {DType::u8}, job.layer.word));
  const int64_t k = eight ? w.cols : 2 * w.cols;
  scheme.weight.format = eight ? Format::e4m3 : Format::e2m1;
  scheme.weight.storage = eight ? Storage::dense : Storage::nibbles;
  scheme.weight.grouping = {Grouping::Kind::group, 1, 32};
  scheme.weight.scale = DType::f8_e8m0;
  GEARSHIFT_CHECK(reader.take(TensorRole::weight_scale, "weight_scale", kExponentScales, {w.rows, ceil_div(k, 32)},
                              "one exponent per 32 columns"));
  if (job.layer.algorithm == Algorithm::mxfp4_fp8) {
    const bool stored = reader.has("input_scale");
    scheme.activation = activation(Format::e4m3, stored ? Granularity::tensor : Granularity::token, !stored);
    if (stored) GEARSHIFT_CHECK(take_input_scale(reader, job.layer.word));
  } else if (!job.weight_only) {
    scheme.activation = activation(scheme.weight.format, Granularity::token_group, true, 32);
    scheme.activation->rule = ScaleRule::e8m0_ceil;
  }
  return reader.finish(scheme, w.rows, k);
}

Result<ModuleScheme> read_awq(const Job& job) {
  ModuleReader& reader = job.reader;
  Scheme scheme;
  scheme.quantized = true;
  const int64_t group = job.layer.group > 0 ? job.layer.group : 128;
  GEARSHIFT_TRY(const ModuleReader::Matrix w, reader.codes("weight", {DType::u8}, job.layer.word));
  const int64_t n = 2 * w.rows;  // two rows a byte
  scheme.weight.format = Format::int4;
  scheme.weight.storage = Storage::rows_in_byte;
  scheme.weight.grouping = {Grouping::Kind::group, 1, group};
  GEARSHIFT_TRY(scheme.weight.scale,
                reader.take(TensorRole::weight_scale, "weight_scale", kFloatScales, {n, ceil_div(w.cols, group)},
                            "one scale per " + std::to_string(group) + " columns"));
  GEARSHIFT_CHECK(take_pre_scale(reader, w.cols, &scheme));
  if (job.layer.algorithm == Algorithm::w4a8_awq) {
    // Maps codes into the FP8 domain of one kernel; w = code * weight_scale without it.
    reader.skip("weight_scale_2");
    scheme.activation = activation(Format::e4m3, Granularity::tensor, false);
    GEARSHIFT_CHECK(take_input_scale(reader, job.layer.word));
  }
  return reader.finish(scheme, n, w.cols);
}

Result<ModuleScheme> read_int8(const Job& job) {
  ModuleReader& reader = job.reader;
  Scheme scheme;
  scheme.quantized = true;
  GEARSHIFT_TRY(const ModuleReader::Matrix w, reader.codes("weight", {DType::i8}, job.layer.word));
  scheme.weight.format = Format::int8;
  scheme.weight.grouping = {Grouping::Kind::row, 1, 0};
  GEARSHIFT_TRY(scheme.weight.scale,
                reader.take(TensorRole::weight_scale, "weight_scale", kFloatScales, {w.rows}, "one scale per row"));
  if (job.layer.algorithm == Algorithm::smoothquant) {
    GEARSHIFT_CHECK(take_pre_scale(reader, w.cols, &scheme));
    scheme.activation = activation(Format::int8, Granularity::tensor, false);
    GEARSHIFT_CHECK(take_input_scale(reader, job.layer.word));
  }
  return reader.finish(scheme, w.rows, w.cols);
}

}  // namespace

Result<ModuleScheme> read_module(const ModuleTensors& module, const Layer& layer, bool weight_only) {
  if (is_transposed(module)) {
    return ErrorInfo{ErrorCode::unsupported_scheme,
                     module.name,
                     "ModelOpt " + layer.word + " expert stack stored as [experts, K, N]",
                     "experts stored one by one",
                     "export the model again with separate experts",
                     {}};
  }
  ModuleReader reader(module);
  const Job job{reader, layer, weight_only};
  switch (layer.algorithm) {
    case Algorithm::fp8:
    case Algorithm::fp8_per_channel:
    case Algorithm::fp8_block:
      return read_fp8(job);
    case Algorithm::nvfp4:
    case Algorithm::nvfp4_w4a16:
    case Algorithm::nvfp4_fp8:
      return read_nvfp4(job);
    case Algorithm::mxfp4:
    case Algorithm::mxfp4_fp8:
    case Algorithm::mxfp8:
      return read_mx(job);
    case Algorithm::int4_awq:
    case Algorithm::w4a8_awq:
      return read_awq(job);
    default:
      return read_int8(job);
  }
}

std::vector<ExpectedTensor> expected_tensors(const Layer& layer, int64_t n, int64_t k) {
  const ExpectedTensor input{"input_scale", DType::f32, {}};
  switch (layer.algorithm) {
    case Algorithm::fp8:
      return {{"weight", DType::f8_e4m3, {n, k}}, {"weight_scale", DType::f32, {}}, input};
    case Algorithm::fp8_per_channel:
      return {{"weight", DType::f8_e4m3, {n, k}}, {"weight_scale", DType::f32, {n}}};
    case Algorithm::fp8_block:
      return {{"weight", DType::f8_e4m3, {n, k}},
              {"weight_scale", DType::f32, {ceil_div(n, 128), 1, ceil_div(k, 128), 1}}};
    case Algorithm::nvfp4:
    case Algorithm::nvfp4_w4a16:
    case Algorithm::nvfp4_fp8: {
      std::vector<ExpectedTensor> tensors = {
          {"weight", DType::u8, {n, k / 2}},
          {"weight_scale", DType::f8_e4m3, {n, ceil_div(k, layer.group > 0 ? layer.group : 16)}},
          {"weight_scale_2", DType::f32, {}}};
      if (layer.algorithm != Algorithm::nvfp4_w4a16) tensors.push_back(input);
      return tensors;
    }
    case Algorithm::mxfp4:
    case Algorithm::mxfp4_fp8:
      return {{"weight", DType::u8, {n, k / 2}}, {"weight_scale", DType::u8, {n, ceil_div(k, 32)}}};
    case Algorithm::mxfp8:
      return {{"weight", DType::f8_e4m3, {n, k}}, {"weight_scale", DType::u8, {n, ceil_div(k, 32)}}};
    case Algorithm::int4_awq:
    case Algorithm::w4a8_awq: {
      std::vector<ExpectedTensor> tensors = {
          {"weight", DType::u8, {n / 2, k}},
          {"weight_scale", DType::bf16, {n, ceil_div(k, layer.group > 0 ? layer.group : 128)}},
          {"pre_quant_scale", DType::bf16, {k}}};
      if (layer.algorithm == Algorithm::w4a8_awq) tensors.push_back(input);
      return tensors;
    }
    case Algorithm::smoothquant:
      return {{"weight", DType::i8, {n, k}},
              {"weight_scale", DType::f32, {n}},
              {"pre_quant_scale", DType::bf16, {k}},
              input};
    default:
      return {{"weight", DType::i8, {n, k}}, {"weight_scale", DType::f32, {n}}};
  }
}

}  // namespace gearshift::modelopt
