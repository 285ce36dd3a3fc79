#include "plan/arithmetic.h"

namespace gearshift {

std::string_view activation_word(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return "fp16";
    case DType::f32:
      return "fp32";
    default:
      return "bf16";
  }
}

std::string_view activation_word(const LayerSpec& layer, DType dtype) {
  if (!layer.scheme.activation) return activation_word(dtype);
  const ActivationScheme& activation = *layer.scheme.activation;
  const bool power_of_two_scale = activation.rule == ScaleRule::e8m0_floor || activation.rule == ScaleRule::e8m0_ceil ||
                                  activation.rule == ScaleRule::e8m0_even;
  switch (activation.format) {
    case Format::float_:
      return activation_word(dtype);
    case Format::e2m1:
      return power_of_two_scale ? "mxfp4" : "nvfp4";
    case Format::e2m3:
    case Format::e3m2:
      return "mxfp6";
    case Format::e4m3:
    case Format::e5m2:
      return power_of_two_scale ? "mxfp8" : "fp8";
    default:
      return name(activation.format);
  }
}

bool scale_spans_rows(const Scheme& scheme) {
  const auto& activation = scheme.activation;
  return activation && activation->dynamic && activation->granularity == Granularity::tensor;
}

bool upgrades_activations(const Kernel& kernel, const LayerSpec& layer) {
  return kernel.activation == ActivationUse::float16 && layer.scheme.activation.has_value();
}

std::string_view activation_word(const Kernel& kernel, const LayerSpec& layer, DType dtype) {
  return kernel.activation == ActivationUse::float16 ? activation_word(dtype) : activation_word(layer, dtype);
}

}  // namespace gearshift
