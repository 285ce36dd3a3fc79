// Mistral's native FP8 files: params.json says `quantization`, and what has a `qscale_weight` is FP8 with one scale
// (formats.md 4.5).
#include "base/text.h"
#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/fp8.h"

namespace gearshift {
namespace {

class Reader final : public SchemeReader {
 public:
  explicit Reader(const ModelConfig& config) : config_(config) {}

  Result<void> parse() {
    const QuantConfig& quant = config_.quant;
    const std::string weights = lower(quant.dict->text_or("qformat_weight", ""));
    if (weights != "fp8_e4m3") {
      return unsupported_scheme(quant.key("qformat_weight"),
                                "Mistral weights of format \"" + printable(weights, 60) + "\"", "fp8_e4m3");
    }
    const std::string activations = lower(quant.dict->text_or("qscheme_act", "TENSOR"));
    if (activations != "tensor" && activations != "no_scales") {
      return unsupported_scheme(quant.key("qscheme_act"), "Mistral activations \"" + printable(activations, 60) + "\"",
                                "TENSOR or NO_SCALES");
    }
    arguments_.word = "FP8";
    arguments_.static_activations = activations == "tensor";
    return {};
  }

  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    return is_plain_float(module) ? read_unquantized(module, config_) : fp8::read_module(module, arguments_);
  }
  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const override {
    if (is_never_converted(module)) return std::vector<ExpectedTensor>{};
    return fp8::expected_tensors(arguments_, n, k);
  }

 private:
  const ModelConfig& config_;
  fp8::Arguments arguments_;
};

}  // namespace

extern const SchemeEntry mistral_scheme;
const SchemeEntry mistral_scheme = {
    "mistral",
    [](const QuantConfig& config) { return config.method == "mistral"; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      auto reader = std::make_unique<Reader>(config);
      GEARSHIFT_CHECK(reader->parse());
      return std::unique_ptr<SchemeReader>(std::move(reader));
    },
};

}  // namespace gearshift
