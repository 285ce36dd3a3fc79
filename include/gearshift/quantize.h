// The house walked backwards: float tensors -> a checkpoint in scheme S that other tools read.
#pragma once

#include <functional>

#include "gearshift/checkpoint.h"
#include "gearshift/layer.h"

namespace gearshift {

// One rule of `quantize --scheme`: a preset name of compressed-tensors (any case), for all layers (glob "") or matching ones.
struct QuantizeRule {
  std::string glob, scheme;
};
struct QuantizeRequest {
  std::string model;                  // a float checkpoint
  std::string out;                    // directory to create; must not exist or be empty
  std::vector<QuantizeRule> rules;
  std::string container = "compressed-tensors";
  std::string calibration;            // safetensors of activations, one tensor per layer name; "" for none
  std::function<void(size_t done, size_t total)> progress;
};
struct QuantizedLayer {
  std::string name, scheme;
  int64_t n = 0, k = 0;
  double relative_error = 0, cosine = 1, worst_row = 0;  // dequantised against original weights
  uint64_t bytes_before = 0, bytes_after = 0;
};
struct QuantizeReport {
  std::string out;
  std::vector<QuantizedLayer> layers;
  std::vector<std::string> notes;     // defaults that were used, layers left alone
};
// Errors: usage (unknown preset, pattern that matches nothing, OUT exists), damaged_checkpoint, runtime. On error
// nothing is left under `out`.
Result<QuantizeReport> quantize(const QuantizeRequest& request);

}  // namespace gearshift
