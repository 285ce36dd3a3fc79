// AMD Quark, shared by its two files: the tensor specifications of a layer, and what they make of its tensors.
#pragma once

#include "base/json.h"
#include "layer/scheme/scheme.h"

namespace gearshift::quark {

enum class Element : uint8_t { e4m3, e5m2, e2m1, e2m3, e3m2, int8, int4, uint4 };
enum class Granularity : uint8_t { per_tensor, per_channel, per_group, per_block };

// How one tensor (weights, inputs) is quantized.
struct TensorSpec {
  Element element = Element::e4m3;
  std::string word;  // as written, for messages
  Granularity granularity = Granularity::per_tensor;
  int64_t group = 0;                       // columns, per_group
  int64_t block_rows = 0, block_cols = 0;  // per_block
  bool dynamic = false;
  bool symmetric = true;
  bool exponents = false;   // scales are powers of two (MX)
  bool two_levels = false;  // NVFP4: block scales below a tensor-wide one
  ScaleRule rule = ScaleRule::e8m0_even;
};

struct LayerSpecs {
  std::optional<TensorSpec> weight, input;  // nullopt: float
  std::string subject;                      // the config key, for messages
};

// Errors: damaged_checkpoint (wrong types), unsupported_scheme (an element or a combination that is not loaded).
Result<LayerSpecs> parse_layer(const Json& json, const std::string& subject);

// Reads a module whose weights are quantized. `reordered`: INT4 words are interleaved as AWQ's (pack_method).
Result<ModuleScheme> read_module(const ModuleTensors& module, const LayerSpecs& specs, bool reordered);
// The tensors of such a module. REQUIRES: its weights are quantized.
std::vector<ExpectedTensor> expected_tensors(const LayerSpecs& specs, int64_t n, int64_t k);

}  // namespace gearshift::quark
