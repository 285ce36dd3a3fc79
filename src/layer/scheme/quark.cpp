// AMD Quark: which specifications a module has: exclusions, then its own, its class's, the model's (formats.md 8).
#include "layer/scheme/quark.h"

#include "base/text.h"
#include "base/try.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/names.h"

namespace gearshift {
namespace {

class Reader final : public SchemeReader {
 public:
  explicit Reader(const ModelConfig& config) : config_(config) {}

  Result<void> parse() {
    const QuantConfig& quant = config_.quant;
    GEARSHIFT_TRY(const std::vector<std::string> excluded,
                  string_list(quant.dict->find("exclude"), quant.key("exclude")));
    for (const std::string& entry : excluded) {
      if (entry.starts_with("re:")) {
        GEARSHIFT_CHECK(excluded_expressions_.add(entry, quant.key("exclude")));
      } else {
        excluded_.add(entry);
      }
    }
    if (const Json* layers = quant.dict->find("layer_quant_config"); layers != nullptr) {
      for (const auto& [pattern, value] : layers->members) {
        GEARSHIFT_TRY(quark::LayerSpecs specs,
                      quark::parse_layer(value, quant.key("layer_quant_config." + printable(pattern, 80))));
        by_name_.emplace_back(pattern, std::move(specs));
      }
    }
    if (const Json* classes = quant.dict->find("layer_type_quant_config"); classes != nullptr) {
      for (const auto& [label, value] : classes->members) {
        if (label.find("Linear") == std::string::npos) continue;  // other classes hold no linear layer
        GEARSHIFT_TRY(by_class_,
                      quark::parse_layer(value, quant.key("layer_type_quant_config." + printable(label, 80))));
      }
    }
    if (const Json* global = quant.dict->find("global_quant_config"); global != nullptr) {
      GEARSHIFT_TRY(global_, quark::parse_layer(*global, quant.key("global_quant_config")));
    }
    return parse_export();
  }

  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    const bool plain = is_plain_float(module);
    const std::optional<std::string> rule = rule_name(config_, module);
    if (!rule || is_excluded(*rule, plain)) return read_unquantized(module, config_);
    const quark::LayerSpecs& specs = specs_of(*rule);
    if (!specs.weight) return read_unquantized(module, config_);
    if (!plain) return quark::read_module(module, specs, reordered_);
    if (stays_float_unlisted(module)) return read_unquantized(module, config_);
    return unexpected_float(module, "quark " + specs.weight->word + " tensors", config_.quant);
  }

  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const override {
    const std::vector<ExpectedTensor> none;
    const std::optional<std::string> rule = rule_name(config_, module);
    if (!rule || is_excluded(*rule, true) || module.draft || is_router_like(module.name)) return none;
    const quark::LayerSpecs& specs = specs_of(*rule);
    return specs.weight ? quark::expected_tensors(specs, n, k) : none;
  }

 private:
  Result<void> parse_export() {
    const QuantConfig& quant = config_.quant;
    const Json* written = quant.dict->find("export");
    if (written == nullptr) return {};
    const std::string format = lower(written->text_or("weight_format", "real_quantized"));
    if (format != "real_quantized") {
      return unsupported_scheme(quant.key("export.weight_format"), "quark weights \"" + printable(format, 60) + "\"",
                                "real_quantized");
    }
    const std::string order = lower(written->text_or("pack_method", "reorder"));
    if (order != "reorder" && order != "order") {
      return unsupported_scheme(quant.key("export.pack_method"), "quark pack_method \"" + printable(order, 60) + "\"",
                                "reorder or order");
    }
    reordered_ = order == "reorder";
    return {};
  }

  bool is_excluded(std::string_view name, bool plain) const {
    if (excluded_.match(name) || excluded_expressions_.match(name)) return true;
    if (!plain) return false;
    if (excluded_.match_respelled(name) || excluded_expressions_.match_respelled(name)) return true;
    const std::string fused = fused_name(name);
    return !fused.empty() && (excluded_.match(fused) || excluded_expressions_.match(fused));
  }

  const quark::LayerSpecs& specs_of(std::string_view name) const {
    for (const std::string& spelled : {std::string(name), fused_name(name)}) {
      if (spelled.empty()) continue;
      for (const auto& [pattern, specs] : by_name_) {
        if (fnmatch(pattern, spelled) || has_components(spelled, pattern)) return specs;
      }
    }
    return by_class_ ? *by_class_ : global_;
  }

  const ModelConfig& config_;
  ExcludeList excluded_;
  TargetList excluded_expressions_;
  std::vector<std::pair<std::string, quark::LayerSpecs>> by_name_;
  std::optional<quark::LayerSpecs> by_class_;
  quark::LayerSpecs global_;
  bool reordered_ = true;
};

}  // namespace

extern const SchemeEntry quark_scheme;
const SchemeEntry quark_scheme = {
    "quark",
    [](const QuantConfig& config) { return config.method == "quark"; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      auto reader = std::make_unique<Reader>(config);
      GEARSHIFT_CHECK(reader->parse());
      return std::unique_ptr<SchemeReader>(std::move(reader));
    },
};

}  // namespace gearshift
