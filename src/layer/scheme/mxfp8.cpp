// quant_method "mxfp8" (MiniMax-M3): FP8 with an exponent per 32 columns; routed experts may be NVFP4 (formats.md 4.8).
#include <algorithm>

#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/module_reader.h"
#include "layer/scheme/routed_nvfp4.h"

namespace gearshift {
namespace {

constexpr int64_t kGroup = 32;

Result<ModuleScheme> read_mxfp8(const ModuleTensors& module) {
  ModuleReader reader(module);
  GEARSHIFT_TRY(const ModuleReader::Matrix w,
                reader.codes("weight", {DType::f8_e4m3}, "the config says that this module is MXFP8"));
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight.format = Format::e4m3;
  scheme.weight.grouping = {Grouping::Kind::group, 1, kGroup};
  scheme.weight.scale = DType::f8_e8m0;
  GEARSHIFT_CHECK(reader.take(TensorRole::weight_scale,
                              reader.has("weight_scale") ? "weight_scale" : "weight_scale_inv", kExponentScales,
                              {w.rows, ceil_div(w.cols, kGroup)}, "one exponent per 32 columns"));
  ActivationScheme activation;
  activation.format = Format::e4m3;
  activation.granularity = Granularity::token_group;
  activation.group = kGroup;
  activation.rule = ScaleRule::e8m0_ceil;  // ue8m0: rounded up, so that nothing saturates
  scheme.activation = activation;
  return reader.finish(scheme, w.rows, w.cols);
}

class Reader final : public SchemeReader {
 public:
  explicit Reader(const ModelConfig& config) : config_(config) {}

  Result<void> parse() {
    const QuantConfig& quant = config_.quant;
    GEARSHIFT_TRY(modules_, ConvertedModules::parse(quant));
    const Json* size = quant.dict->find("weight_block_size");
    const bool blocks_of_32 =
        size == nullptr || size->is_null() ||
        (size->items.size() == 2 && size->items[0].is(Json::Kind::integer) && size->items[0].integer == 1 &&
         size->items[1].is(Json::Kind::integer) && size->items[1].integer == kGroup);
    if (!blocks_of_32) {
      return unsupported_scheme(quant.key("weight_block_size"), "mxfp8 with blocks of another size", "[1, 32]");
    }
    const std::string activations = lower(quant.dict->text_or("activation_scheme", "dynamic"));
    if (activations != "dynamic") {
      return unsupported_scheme(quant.key("activation_scheme"),
                                "mxfp8 with activation_scheme \"" + printable(activations, 60) + "\"", "dynamic");
    }
    return {};
  }

  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    const bool plain = is_plain_float(module);
    const std::optional<std::string> rule = rule_name(config_, module);
    if (!rule || modules_.not_converted.match(*rule) || (plain && modules_.not_converted.match_loosely(*rule)))
      return read_unquantized(module, config_);
    if (plain) {
      if (modules_.not_converted.empty() || stays_float_unlisted(module)) return read_unquantized(module, config_);
      return unexpected_float(module, "MXFP8 tensors", config_.quant);
    }
    return modules_.routed && modules_.routed->covers(module) ? modules_.routed->read(module) : read_mxfp8(module);
  }

  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const override {
    const std::optional<std::string> rule = rule_name(config_, module);
    if (!rule || modules_.not_converted.match_loosely(*rule) || is_never_converted(module))
      return std::vector<ExpectedTensor>{};
    if (modules_.routed && modules_.routed->covers(module)) return modules_.routed->expected(n, k);
    return std::vector<ExpectedTensor>{{"weight", DType::f8_e4m3, {n, k}},
                                       {"weight_scale_inv", DType::u8, {n, ceil_div(k, kGroup)}}};
  }

 private:
  const ModelConfig& config_;
  ConvertedModules modules_;
};

}  // namespace

extern const SchemeEntry mxfp8_scheme;
const SchemeEntry mxfp8_scheme = {
    "mxfp8",
    [](const QuantConfig& config) { return config.method == "mxfp8"; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      auto reader = std::make_unique<Reader>(config);
      GEARSHIFT_CHECK(reader->parse());
      return std::unique_ptr<SchemeReader>(std::move(reader));
    },
};

}  // namespace gearshift
