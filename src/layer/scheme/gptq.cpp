// quant_method "gptq": arguments, and the rules that change them for single modules (formats.md 5.1, 5.4, 5.5). Whether
// a module is quantized shows in its tensors.
#include "layer/scheme/gptq.h"

#include "base/text.h"
#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/names.h"

namespace gearshift {
namespace {

constexpr RefusedFormat kMarlin = {"marlin", "INT4 in the tile permutation of one GPU kernel",
                                   "convert the GPTQ checkpoint it was made from"};

// An entry of `dynamic`: the first whose expression matches a module's name decides.
struct Rule {
  Regex expression;
  bool skip = false;
  gptq::Arguments arguments;
};

class Reader final : public SchemeReader {
 public:
  explicit Reader(const ModelConfig& config) : config_(config) {}

  Result<void> parse() {
    const QuantConfig& quant = config_.quant;
    GEARSHIFT_CHECK(parse_format());
    GEARSHIFT_TRY(base_, parse_arguments(*quant.dict, base_, quant.source));
    const Json* lm_head = quant.dict->find("lm_head");
    float_head_ = lm_head != nullptr && lm_head->is(Json::Kind::boolean) && !lm_head->boolean;
    quantizes_head_ = quant.dict->boolean_or("lm_head", false);
    const Json* dynamic = quant.dict->find("dynamic");
    if (dynamic == nullptr || dynamic->is_null()) return {};
    if (!dynamic->is(Json::Kind::object)) {
      return ErrorInfo{ErrorCode::damaged_checkpoint,
                       quant.key("dynamic"),
                       std::string(name(dynamic->kind)),
                       "an object of rules by expression",
                       "",
                       {}};
    }
    for (const auto& [key, value] : dynamic->members) GEARSHIFT_CHECK(add_rule(key, value));
    return {};
  }

  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    if (module.find("B") != nullptr) return refusal(kMarlin, module.name);
    const std::optional<std::string> name = rule_name(config_, module);
    if (!name || is_plain_float(module)) return read_unquantized(module, config_);
    const Rule* rule = rule_of(*name);
    if (rule == nullptr && float_head_ && core_name(*name) == "lm_head") return read_unquantized(module, config_);
    if (rule != nullptr && rule->skip) return read_unquantized(module, config_);
    return gptq::read_module(module, rule != nullptr ? rule->arguments : base_);
  }

  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const override {
    const std::vector<ExpectedTensor> none;
    const std::optional<std::string> name = rule_name(config_, module);
    if (!name) return none;
    const Rule* rule = rule_of(*name);
    // The writer goes through the decoder's layers; a head needs to be asked for.
    const bool head = core_name(*name) == "lm_head" && quantizes_head_;
    if ((rule != nullptr && rule->skip) || !(head || is_in_decoder(module))) return none;
    return gptq::expected_tensors(rule != nullptr ? rule->arguments : base_, n, k);
  }

 private:
  Result<void> parse_format() {
    const QuantConfig& quant = config_.quant;
    const std::string format = lower(quant.dict->text_or("checkpoint_format", "gptq"));
    if (format == "marlin" || quant.dict->boolean_or("is_marlin_format", false))
      return refusal(kMarlin, quant.key("checkpoint_format"));
    if (format != "gptq" && format != "gptq_v2") {
      return unsupported_scheme(quant.key("checkpoint_format"), "gptq in format \"" + printable(format, 60) + "\"",
                                "gptq or gptq_v2");
    }
    const std::string word = lower(quant.dict->text_or("pack_dtype", "int32"));
    if (word != "int32") {
      return unsupported_scheme(quant.key("pack_dtype"), "gptq packed in " + printable(word, 60), "int32");
    }
    base_.storage = format == "gptq_v2" ? Storage::gptq_v2 : Storage::gptq_v1;
    return {};
  }

  static Result<gptq::Arguments> parse_arguments(const Json& json, gptq::Arguments arguments,
                                                 const std::string& where) {
    GEARSHIFT_TRY(const std::optional<int64_t> bits, integer_member(json, {"bits", "w_bit"}, where));
    if (bits) {
      arguments.bits = *bits;
      arguments.subject = where + ".bits";
    }
    GEARSHIFT_TRY(arguments.group, group_size_member(json, where, arguments.group));
    arguments.symmetric = json.boolean_or("sym", arguments.symmetric);
    arguments.act_order = json.boolean_or("desc_act", arguments.act_order);
    return arguments;
  }

  Result<void> add_rule(std::string_view key, const Json& value) {
    Rule rule;
    rule.skip = key.starts_with("-:");
    const std::string where = config_.quant.key("dynamic." + printable(key, 80));
    if (rule.skip || key.starts_with("+:")) key.remove_prefix(2);
    GEARSHIFT_TRY(rule.expression, Regex::compile(std::string(key), where));
    if (!rule.skip) {
      GEARSHIFT_TRY(rule.arguments, parse_arguments(value, base_, where));
    }
    rules_.push_back(std::move(rule));
    return {};
  }

  const Rule* rule_of(std::string_view name) const {
    for (const Rule& rule : rules_) {
      if (rule.expression.match_start(name)) return &rule;
    }
    for (const std::string& spelled : rules_.empty() ? std::vector<std::string>{} : respellings(name)) {
      for (const Rule& rule : rules_) {
        if (rule.expression.match_start(spelled)) return &rule;
      }
    }
    return nullptr;
  }

  const ModelConfig& config_;
  gptq::Arguments base_;
  bool float_head_ = false;      // lm_head: false
  bool quantizes_head_ = false;  // lm_head: true
  std::vector<Rule> rules_;
};

}  // namespace

extern const SchemeEntry gptq_scheme;
const SchemeEntry gptq_scheme = {
    "gptq",
    [](const QuantConfig& config) { return config.method == "gptq"; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      auto reader = std::make_unique<Reader>(config);
      GEARSHIFT_CHECK(reader->parse());
      return std::unique_ptr<SchemeReader>(std::move(reader));
    },
};

}  // namespace gearshift
