// ModelOpt, shared by its two files: the algorithm of a module, and what it makes of the module's tensors.
#pragma once

#include "layer/scheme/scheme.h"

namespace gearshift::modelopt {

enum class Algorithm : uint8_t {
  none,
  fp8,
  fp8_per_channel,
  fp8_block,
  nvfp4,
  nvfp4_w4a16,
  nvfp4_fp8,
  mxfp4,
  mxfp4_fp8,
  mxfp8,
  int4_awq,
  w4a8_awq,
  w8a16,
  smoothquant,
  mixed,
  refused
};
// The algorithm of one module or of the whole checkpoint. `word` is kept for messages.
struct Layer {
  Algorithm algorithm = Algorithm::none;
  std::string word;
  int64_t group = 0;  // 0: the algorithm's own
};

// Reads a module that `layer` quantizes. `weight_only`: the config says that MX activations stay in 16 bits.
// REQUIRES: an algorithm that is none of none, mixed, refused.
Result<ModuleScheme> read_module(const ModuleTensors& module, const Layer& layer, bool weight_only);
// The tensors of such a module.
std::vector<ExpectedTensor> expected_tensors(const Layer& layer, int64_t n, int64_t k);

}  // namespace gearshift::modelopt
