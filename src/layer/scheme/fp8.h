// FP8 with float or exponent scales, as DeepSeek, transformers, Mistral, fbgemm and Quark store it: what the config
// says, and what that makes of a module's tensors (formats.md 4).
#pragma once

#include "layer/scheme/scheme.h"

namespace gearshift::fp8 {

struct Arguments {
  std::string word;                        // for messages: "fp8"
  Format format = Format::e4m3;            // or e5m2
  int64_t block_rows = 0, block_cols = 0;  // one scale per tile; 0: per tensor or row, as the scales' shape says
  // Activations: a stored scale; else made at run time, per group of columns, per tensor, or (none of these) per token.
  bool static_activations = false;
  bool tensor_activations = false;
  int64_t activation_group = 0;
  bool weight_only = false;
  ScaleRule rule = ScaleRule::amax;
  float amax_limit = 0;
};

// Reads a module that is stored in FP8.
Result<ModuleScheme> read_module(const ModuleTensors& module, const Arguments& arguments);
// Reads a module of packed e2m1 codes with an exponent per 32 columns, stored as `weight` and `scale` (DeepSeek-V4's
// experts). Activations: a choice of the runtime, so none are promised.
Result<ModuleScheme> read_fp4_module(const ModuleTensors& module);
// The tensors of a module in FP8 (`rows`: one scale per row where it is not in blocks), and in FP4.
std::vector<ExpectedTensor> expected_tensors(const Arguments& arguments, int64_t n, int64_t k, bool rows = false);
std::vector<ExpectedTensor> expected_fp4_tensors(int64_t n, int64_t k);

}  // namespace gearshift::fp8
