// quant_method "fp8": which modules are FP8 and with which arguments (formats.md 4.1 to 4.4, 4.7). Lists are often
// missing or incomplete here: the scales of a module decide.
#include "layer/scheme/fp8.h"

#include <algorithm>

#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/routed_nvfp4.h"

namespace gearshift {
namespace {

// DeepSeek-V4's `expert_dtype`. Absent, both kinds exist: the stored dtype tells.
enum class ExpertDType : uint8_t { unsaid, fp8, fp4 };

class Reader final : public SchemeReader {
 public:
  explicit Reader(const ModelConfig& config) : config_(config) {}

  Result<void> parse() {
    GEARSHIFT_TRY(modules_, ConvertedModules::parse(config_.quant));
    GEARSHIFT_CHECK(parse_format());
    GEARSHIFT_CHECK(parse_blocks());
    GEARSHIFT_CHECK(parse_activations());
    return parse_expert_dtype();
  }

  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    const bool plain = is_plain_float(module);
    const std::optional<std::string> rule = rule_name(config_, module);
    if (!rule) return read_unquantized(module, config_);
    // A tied head has the embedding's tensors, whatever the list says of heads.
    const bool excluded = !(module.tied_head && !plain) && modules_.not_converted.match(*rule);
    if (excluded || (plain && modules_.not_converted.match_loosely(*rule))) return read_unquantized(module, config_);
    if (plain) {
      // Without a list the scales alone tell what was converted.
      if (modules_.not_converted.empty() || stays_float_unlisted(module)) return read_unquantized(module, config_);
      return unexpected_float(module, "FP8 tensors", config_.quant);
    }
    if (modules_.routed && modules_.routed->covers(module)) return modules_.routed->read(module);
    const TensorInfo* weight = module.find("weight");
    if (weight != nullptr && (weight->dtype == DType::i8 || weight->dtype == DType::u8)) return read_packed(module);
    if (expert_dtype_ == ExpertDType::fp4 && is_routed(module) && !module.draft && weight != nullptr) {
      return ErrorInfo{ErrorCode::damaged_checkpoint,
                       weight->name,
                       std::string(name(weight->dtype)) + " " + to_string(weight->shape),
                       "packed FP4 codes (I8 or U8): expert_dtype is \"fp4\"",
                       "",
                       {}};
    }
    return fp8::read_module(module, arguments_);
  }

  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const override {
    const std::optional<std::string> rule = rule_name(config_, module);
    if (!rule || modules_.not_converted.match_loosely(*rule) || is_never_converted(module))
      return std::vector<ExpectedTensor>{};
    if (modules_.routed && modules_.routed->covers(module)) return modules_.routed->expected(n, k);
    if (expert_dtype_ == ExpertDType::fp4 && is_routed(module) && !module.draft) return fp8::expected_fp4_tensors(n, k);
    return fp8::expected_tensors(arguments_, n, k);
  }

 private:
  static bool is_routed(const ModuleTensors& module) {
    return module.raw_stack || expert_name(module.name).has_value();
  }

  Result<void> parse_format() {
    arguments_.word = "FP8";
    const std::string format = lower(config_.quant.dict->text_or("fmt", "e4m3"));
    if (format.find("e5m2") != std::string::npos) {
      arguments_.format = Format::e5m2;
      return {};
    }
    if (format.find("e4m3") != std::string::npos && format.find("fnuz") == std::string::npos) return {};
    return unsupported_scheme(config_.quant.key("fmt"), "fp8 codes of format \"" + printable(format, 60) + "\"",
                              "e4m3 or e5m2");
  }

  Result<void> parse_blocks() {
    const QuantConfig& quant = config_.quant;
    const Json* size = quant.dict->find("weight_block_size");
    if (size == nullptr || size->is_null()) {
      // Only checkpoints with NVFP4 experts leave it out, and their other layers are in blocks all the same.
      if (modules_.routed) arguments_.block_rows = arguments_.block_cols = 128;
    } else {
      const bool valid =
          size->is(Json::Kind::array) && size->items.size() == 2 &&
          std::all_of(size->items.begin(), size->items.end(), [](const Json& side) {
            return side.is(Json::Kind::integer) && side.integer > 0 && side.integer <= (int64_t{1} << 31);
          });
      if (!valid) {
        return ErrorInfo{ErrorCode::damaged_checkpoint,
                         quant.key("weight_block_size"),
                         "no pair of positive integers",
                         "[rows, columns], or null for one scale per tensor",
                         "",
                         {}};
      }
      arguments_.block_rows = size->items[0].integer;
      arguments_.block_cols = size->items[1].integer;
    }
    arguments_.activation_group = arguments_.block_cols;
    if (quant.dict->boolean_or("weight_per_tensor", false)) arguments_.block_rows = arguments_.block_cols = 0;
    return {};
  }

  Result<void> parse_activations() {
    const QuantConfig& quant = config_.quant;
    const std::string scheme = lower(quant.dict->text_or("activation_scheme", "dynamic"));
    if (scheme != "dynamic" && scheme != "static") {
      return unsupported_scheme(quant.key("activation_scheme"), "activation_scheme \"" + printable(scheme, 60) + "\"",
                                "dynamic or static");
    }
    arguments_.static_activations = scheme == "static";
    arguments_.tensor_activations = quant.dict->boolean_or("act_per_tensor", false);
    if (arguments_.static_activations && arguments_.block_rows > 0) {
      return unsupported_scheme(quant.key("activation_scheme"), "static activation scales with block-wise FP8 weights",
                                "dynamic");
    }
    if (lower(quant.dict->text_or("scale_fmt", "")) == "ue8m0") arguments_.rule = ScaleRule::amax_pow2;
    return {};
  }

  Result<void> parse_expert_dtype() {
    const Json* word = config_.find("expert_dtype");
    if (word == nullptr || word->is_null()) return {};
    const std::string dtype = lower(word->string);
    if (dtype == "fp8" || dtype == "fp4") {
      expert_dtype_ = dtype == "fp8" ? ExpertDType::fp8 : ExpertDType::fp4;
      return {};
    }
    return unsupported_scheme("config.json: expert_dtype", "experts of type \"" + printable(dtype, 60) + "\"",
                              "fp8 or fp4");
  }

  // Bytes beside scales, in a checkpoint that says fp8.
  Result<ModuleScheme> read_packed(const ModuleTensors& module) const {
    const TensorInfo* inverse = module.find("weight_scale_inv");
    if (inverse != nullptr && is_float(inverse->dtype)) {
      return unsupported_scheme(module.name, "tensorrt-llm W4AFP8 (INT4 codes under the names of FP8 blocks)",
                                "F8_E4M3 weights beside weight_scale_inv");
    }
    if (expert_dtype_ == ExpertDType::fp8 || !is_routed(module)) {
      const TensorInfo* weight = module.find("weight");
      return ErrorInfo{ErrorCode::damaged_checkpoint,
                       weight->name,
                       std::string(name(weight->dtype)) + " " + to_string(weight->shape),
                       is_routed(module) ? "F8_E4M3: expert_dtype is \"fp8\""
                                         : "F8_E4M3: only routed experts are stored as packed FP4 here",
                       "",
                       {}};
    }
    return fp8::read_fp4_module(module);
  }

  const ModelConfig& config_;
  fp8::Arguments arguments_;
  ConvertedModules modules_;
  ExpertDType expert_dtype_ = ExpertDType::unsaid;
};

}  // namespace

extern const SchemeEntry fp8_scheme;
const SchemeEntry fp8_scheme = {
    "fp8",
    [](const QuantConfig& config) { return config.method == "fp8"; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      auto reader = std::make_unique<Reader>(config);
      GEARSHIFT_CHECK(reader->parse());
      return std::unique_ptr<SchemeReader>(std::move(reader));
    },
};

}  // namespace gearshift
