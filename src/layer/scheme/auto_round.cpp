// AutoRound (also "inc"): the tensors of another writer, named by packing_format (formats.md 9).
#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/try.h"
#include "layer/scheme/awq.h"
#include "layer/scheme/compressed_tensors.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/fp8.h"
#include "layer/scheme/gptq.h"
#include "layer/scheme/names.h"

namespace gearshift {
namespace {

namespace ct = compressed_tensors;

enum class Packing : uint8_t { gptq_v1, gptq_v2, awq, compressed_tensors, fp8_static };

struct PackingName {
  std::string_view word;
  Packing packing;
};
constexpr std::array kPackings = {
    PackingName{"auto_round:auto_gptq", Packing::gptq_v1},
    PackingName{"auto_round:gptq", Packing::gptq_v1},
    PackingName{"auto_round", Packing::gptq_v2},  // asymmetric exports: zero points as they are
    PackingName{"auto_round:gptqmodel", Packing::gptq_v2},
    PackingName{"auto_round:auto_awq", Packing::awq},
    PackingName{"auto_round:awq", Packing::awq},
    PackingName{"auto_round:llm_compressor", Packing::compressed_tensors},
    PackingName{"auto_round:fp8_static", Packing::fp8_static},
    PackingName{"auto_round:fp8", Packing::fp8_static},
};

// What the config says of a module, the top level's keys where it has none of its own.
struct Layer {
  int64_t bits = 4, group = 128, activation_bits = 16;
  bool symmetric = true, dynamic_activations = true;
  std::string data_type = "int";
  std::string subject;
};

bool is_expression(std::string_view key) { return key.find_first_of("*?[](){}|^$+\\") != std::string_view::npos; }

class Reader final : public SchemeReader {
 public:
  explicit Reader(const ModelConfig& config) : config_(config) {}

  Result<void> parse() {
    const QuantConfig& quant = config_.quant;
    const std::string word = lower(quant.dict->text_or("packing_format", "auto_round:auto_gptq"));
    const auto packing =
        std::find_if(kPackings.begin(), kPackings.end(), [&](const PackingName& known) { return known.word == word; });
    if (packing == kPackings.end()) {
      return unsupported_scheme(quant.key("packing_format"), "auto-round packing \"" + printable(word, 60) + "\"",
                                "auto_gptq, gptqmodel, auto_awq, llm_compressor or fp8_static");
    }
    packing_ = packing->packing;
    GEARSHIFT_TRY(base_, parse_layer(*quant.dict, {}, quant.source));
    const Json* extra = quant.dict->find("extra_config");
    if (extra == nullptr || extra->is_null()) return {};
    if (!extra->is(Json::Kind::object)) {
      return ErrorInfo{ErrorCode::damaged_checkpoint,
                       quant.key("extra_config"),
                       std::string(name(extra->kind)),
                       "an object of settings by module",
                       "",
                       {}};
    }
    for (const auto& [key, value] : extra->members) GEARSHIFT_CHECK(add_extra(key, value));
    return {};
  }

  Result<ModuleScheme> read(const ModuleTensors& module) const override {
    const std::optional<std::string> rule = rule_name(config_, module);
    if (!rule || is_plain_float(module)) return read_unquantized(module, config_);
    const Layer& layer = layer_of(*rule);
    if (layer.bits >= 16) return read_unquantized(module, config_);
    switch (packing_) {
      case Packing::gptq_v1:
      case Packing::gptq_v2:
      case Packing::awq:
        return read_integers(module, layer);
      case Packing::compressed_tensors: {
        GEARSHIFT_TRY(const ct::Group group, compressed_tensors_group(layer));
        return ct::read_module(module, group);
      }
      case Packing::fp8_static: {
        GEARSHIFT_TRY(const fp8::Arguments arguments, fp8_arguments(layer, module.find("input_scale") != nullptr));
        return fp8::read_module(module, arguments);
      }
    }
    return read_unquantized(module, config_);
  }

  Result<std::vector<ExpectedTensor>> expected(const ModuleTensors& module, int64_t n, int64_t k) const override {
    const std::optional<std::string> rule = rule_name(config_, module);
    // The writer goes through the decoder's layers; a head needs to be asked for.
    const bool reached = rule && (is_in_decoder(module) || (core_name(*rule) == "lm_head" && by_name_.contains(*rule)));
    if (!reached) return std::vector<ExpectedTensor>{};
    const Layer& layer = layer_of(*rule);
    if (layer.bits >= 16) return std::vector<ExpectedTensor>{};
    if (packing_ == Packing::awq) return awq::expected_tensors(awq_arguments(layer), n, k);
    if (packing_ == Packing::compressed_tensors) {
      GEARSHIFT_TRY(const ct::Group group, compressed_tensors_group(layer));
      return ct::expected_tensors(group, n, k);
    }
    if (packing_ == Packing::fp8_static) {
      GEARSHIFT_TRY(const fp8::Arguments arguments, fp8_arguments(layer, false));
      return fp8::expected_tensors(arguments, n, k);
    }
    return gptq::expected_tensors(gptq_arguments(layer), n, k);
  }

 private:
  static Result<Layer> parse_layer(const Json& json, Layer layer, const std::string& where) {
    GEARSHIFT_TRY(const std::optional<int64_t> bits, integer_member(json, {"bits"}, where));
    if (bits) {
      layer.bits = *bits;
      layer.subject = where + ".bits";
    }
    // Settings that leave a module in float need not make sense otherwise.
    if (layer.bits >= 16) return layer;
    GEARSHIFT_TRY(layer.group, group_size_member(json, where, layer.group));
    GEARSHIFT_TRY(const std::optional<int64_t> activation_bits, integer_member(json, {"act_bits"}, where));
    layer.activation_bits = activation_bits.value_or(layer.activation_bits);
    layer.symmetric = json.boolean_or("sym", layer.symmetric);
    layer.dynamic_activations = json.boolean_or("act_dynamic", layer.dynamic_activations);
    layer.data_type = lower(json.text_or("data_type", layer.data_type));
    return layer;
  }

  Result<void> add_extra(const std::string& key, const Json& value) {
    const std::string where = config_.quant.key("extra_config." + printable(key, 80));
    GEARSHIFT_TRY(Layer layer, parse_layer(value, base_, where));
    if (is_expression(key)) {
      GEARSHIFT_TRY(Regex regex, Regex::compile(key, where));
      by_expression_.emplace_back(std::move(regex), std::move(layer));
    } else {
      parts_.push_back(key);
      by_name_.emplace(key, std::move(layer));
    }
    return {};
  }

  // The exact name, then expressions anywhere in the name; a key without special characters counts as one where it
  // stands between dots.
  const Layer& layer_of(std::string_view name) const {
    if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
    for (const std::string& spelled : respellings(name)) {
      if (const auto found = by_name_.find(spelled); found != by_name_.end()) return found->second;
    }
    for (const auto& [regex, layer] : by_expression_) {
      if (regex.search(name)) return layer;
    }
    for (const std::string& part : parts_) {
      if (has_components(name, part)) return by_name_.find(part)->second;
    }
    return base_;
  }

  static ErrorInfo refuse(const Layer& layer, const std::string& wanted) {
    std::string found = "auto-round " + std::to_string(layer.bits) + "-bit " + printable(layer.data_type, 40);
    if (layer.activation_bits < 16) found += " with " + std::to_string(layer.activation_bits) + "-bit activations";
    return unsupported_scheme(layer.subject, std::move(found), wanted);
  }

  static awq::Arguments awq_arguments(const Layer& layer) {
    return {layer.bits, layer.group, layer.symmetric, layer.subject};
  }

  gptq::Arguments gptq_arguments(const Layer& layer) const {
    gptq::Arguments arguments;
    arguments.bits = layer.bits;
    arguments.group = layer.group;
    arguments.symmetric = layer.symmetric;
    arguments.storage = packing_ == Packing::gptq_v2 ? Storage::gptq_v2 : Storage::gptq_v1;
    arguments.subject = layer.subject;
    return arguments;
  }

  Result<ModuleScheme> read_integers(const ModuleTensors& module, const Layer& layer) const {
    if (!layer.data_type.starts_with("int") || layer.activation_bits < 16)
      return refuse(layer, "integer weights with 16-bit activations in this packing");
    return packing_ == Packing::awq ? awq::read_module(module, awq_arguments(layer))
                                    : gptq::read_module(module, gptq_arguments(layer));
  }

  static Result<ct::Group> compressed_tensors_group(const Layer& layer) {
    const bool weight_only = layer.activation_bits >= 16;
    std::string preset;
    if (layer.data_type.starts_with("mx_fp") && (layer.bits == 4 || layer.bits == 8)) {
      preset = layer.bits == 4 ? "MXFP4" : "MXFP8";
    } else if (layer.data_type.starts_with("nv_fp") && layer.bits == 4) {
      preset = "NVFP4";
    }
    if (preset.empty() || (!weight_only && layer.activation_bits != layer.bits))
      return refuse(layer, "mx_fp or nv_fp weights with activations of the same kind, or of 16 bits");
    const std::optional<ct::Preset> found = ct::preset(weight_only ? preset + "A16" : preset);
    ct::Group group;
    group.subject = layer.subject;
    group.format = preset;
    group.weights = found->weights;
    group.input = found->input;
    return group;
  }

  static Result<fp8::Arguments> fp8_arguments(const Layer& layer, bool has_input_scale) {
    if (layer.bits != 8 || !(layer.data_type.starts_with("fp"))) return refuse(layer, "8-bit floats in this packing");
    fp8::Arguments arguments;
    arguments.word = "FP8";
    arguments.weight_only = layer.activation_bits >= 16;
    arguments.static_activations = has_input_scale || !layer.dynamic_activations;
    return arguments;
  }

  const ModelConfig& config_;
  Packing packing_ = Packing::gptq_v1;
  Layer base_;
  NameMap<Layer> by_name_;
  std::vector<std::string> parts_;  // the same keys, in order
  std::vector<std::pair<Regex, Layer>> by_expression_;
};

}  // namespace

extern const SchemeEntry auto_round_scheme;
const SchemeEntry auto_round_scheme = {
    "auto-round",
    [](const QuantConfig& config) { return config.method == "auto-round"; },
    [](const ModelConfig& config) -> Result<std::unique_ptr<SchemeReader>> {
      auto reader = std::make_unique<Reader>(config);
      GEARSHIFT_CHECK(reader->parse());
      return std::unique_ptr<SchemeReader>(std::move(reader));
    },
};

}  // namespace gearshift
