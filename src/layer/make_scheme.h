// Schemes that no checkpoint was read for: samples to plan with, made-up layers to time.
#pragma once

#include "gearshift/layer.h"

namespace gearshift {

// Weights alone: symmetric, scales of one direction, no tensor-wide factor.
inline Scheme quantized_weights(Format format, Storage storage, Grouping grouping, DType scale) {
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight.format = format;
  scheme.weight.storage = storage;
  scheme.weight.grouping = grouping;
  scheme.weight.scale = scale;
  return scheme;
}

// `group`: columns that share a scale, of granularity token_group.
inline ActivationScheme quantized_activations(Format format, Granularity granularity, int64_t group = 0) {
  ActivationScheme activation;
  activation.format = format;
  activation.granularity = granularity;
  activation.group = granularity == Granularity::token_group ? group : 0;
  return activation;
}

}  // namespace gearshift
