#include "layer/scheme/routed_nvfp4.h"

#include "base/try.h"
#include "layer/scheme/compressed_tensors.h"
#include "layer/scheme/config_keys.h"
#include "layer/scheme/modelopt.h"

namespace gearshift {

Result<std::optional<RoutedNvfp4>> RoutedNvfp4::parse(const QuantConfig& quant) {
  const std::string algorithm = lower(quant.dict->text_or("moe_quant_algo", ""));
  if (algorithm.empty() || algorithm == "none") return std::optional<RoutedNvfp4>{};
  RoutedNvfp4 routed;
  routed.subject_ = quant.key("moe_quant_algo");
  routed.weight_only_ = algorithm == "w4a16_nvfp4";
  if (algorithm != "nvfp4" && !routed.weight_only_) {
    return unsupported_scheme(routed.subject_, "moe_quant_algo \"" + printable(algorithm, 60) + "\"",
                              "NVFP4 or W4A16_NVFP4");
  }
  routed.compressed_tensors_ = quant.dict->text_or("moe_quant_format", "") == "nvfp4-pack-quantized";
  GEARSHIFT_TRY(const std::vector<std::string> ignored, string_list(quant.dict->find("ignore"), quant.key("ignore")));
  for (const std::string& entry : ignored) routed.others_.add(entry);
  return std::optional{std::move(routed)};
}

bool RoutedNvfp4::covers(const ModuleTensors& module) const {
  const bool routed = expert_name(module.name).has_value() || module.raw_stack;
  return routed && !module.draft && !others_.match(module.name);
}

Result<ModuleScheme> RoutedNvfp4::read(const ModuleTensors& module) const {
  if (!compressed_tensors_ && module.find("weight_packed") == nullptr) {
    const auto algorithm = weight_only_ ? modelopt::Algorithm::nvfp4_w4a16 : modelopt::Algorithm::nvfp4;
    return modelopt::read_module(module, {algorithm, "NVFP4", 16}, weight_only_);
  }
  compressed_tensors::Group group;
  group.subject = subject_;
  group.layout = compressed_tensors::Layout::nvfp4;
  group.format = "nvfp4-pack-quantized";
  const std::optional<compressed_tensors::Preset> preset = compressed_tensors::preset("NVFP4");
  group.weights = preset->weights;
  // The dictionary does not say whether activations are quantized: the stored scale does.
  if (!weight_only_ && module.find("input_global_scale") != nullptr) group.input = preset->input;
  return compressed_tensors::read_module(module, group);
}

Result<std::vector<ExpectedTensor>> RoutedNvfp4::expected(int64_t n, int64_t k) const {
  const auto algorithm = weight_only_ ? modelopt::Algorithm::nvfp4_w4a16 : modelopt::Algorithm::nvfp4;
  if (!compressed_tensors_) return modelopt::expected_tensors({algorithm, "NVFP4", 16}, n, k);
  compressed_tensors::Group group;
  group.subject = subject_;
  group.layout = compressed_tensors::Layout::nvfp4;
  const std::optional<compressed_tensors::Preset> preset = compressed_tensors::preset("NVFP4");
  group.weights = preset->weights;
  if (!weight_only_) group.input = preset->input;
  return compressed_tensors::expected_tensors(group, n, k);
}

Result<ConvertedModules> ConvertedModules::parse(const QuantConfig& quant) {
  ConvertedModules modules;
  GEARSHIFT_TRY(modules.routed, RoutedNvfp4::parse(quant));
  // Beside `moe_quant_algo`, `ignore` lists what is not NVFP4, not what is float.
  GEARSHIFT_TRY(modules.not_converted, NotConverted::read(quant, {"modules_to_not_convert", "ignored_layers",
                                                                  modules.routed ? std::string_view() : "ignore"}));
  return modules;
}

}  // namespace gearshift
