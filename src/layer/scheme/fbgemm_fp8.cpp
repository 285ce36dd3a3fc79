// fbgemm_fp8: FP8 with one scale per row, activations per token below an upper bound (formats.md 4.6).
#include <cmath>

#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/fp8.h"
#include "layer/scheme/not_converted.h"

namespace gearshift {
namespace {

class Reader final : public SchemeReader {
 public:
  explicit Reader(const ModelConfig& config) : config_(config) {}

  Result<void> parse() {
    const QuantConfig& quant = config_.quant;
    GEARSHIFT_TRY(not_converted_, NotConverted::read(quant, {"modules_to_not_convert", "ignored_layers"}));
    arguments_.word = "FP8";
    arguments_.amax_limit = 1200;  // the writer's default
    const Json* limit = quant.dict->find("activation_scale_ub");
    if (limit == nullptr || limit->is_null()) return {};
    const bool number = limit->is(Json::Kind::integer) || limit->is(Json::Kind::number);
    arguments_.amax_limit = number ? static_cast<float>(limit->number) : 0;
    if (arguments_.amax_limit > 0 && std::isfinite(arguments_.amax_limit)) return {};
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     quant.key("activation_scale_ub"),
                     number ? std::to_string(limit->number) : std::string(name(limit->kind)),
                     "a positive number",
                     "",
                     {}};
  }

  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    const bool plain = is_plain_float(module);
    const std::optional<std::string> rule = rule_name(config_, module);
    if (!rule || not_converted_.match(*rule) || (plain && not_converted_.match_loosely(*rule)))
      return read_unquantized(module, config_);
    if (!plain) return fp8::read_module(module, arguments_);
    // Without a list the scales alone tell what was converted.
    if (not_converted_.empty() || stays_float_unlisted(module)) return read_unquantized(module, config_);
    return unexpected_float(module, "FP8 tensors", config_.quant);
  }

  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const override {
    const std::optional<std::string> rule = rule_name(config_, module);
    if (!rule || not_converted_.match_loosely(*rule) || is_never_converted(module))
      return std::vector<ExpectedTensor>{};
    return fp8::expected_tensors(arguments_, n, k, true);
  }

 private:
  const ModelConfig& config_;
  fp8::Arguments arguments_;
  NotConverted not_converted_;
};

}  // namespace

extern const SchemeEntry fbgemm_fp8_scheme;
const SchemeEntry fbgemm_fp8_scheme = {
    "fbgemm_fp8",
    [](const QuantConfig& config) { return config.method == "fbgemm_fp8"; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      auto reader = std::make_unique<Reader>(config);
      GEARSHIFT_CHECK(reader->parse());
      return std::unique_ptr<SchemeReader>(std::move(reader));
    },
};

}  // namespace gearshift
