// NVFP4 for the routed experts of a checkpoint whose other layers are FP8 or MXFP8: `moe_quant_algo` beside another
// quant_method (formats.md 4.4, 4.8).
#pragma once

#include "layer/scheme/names.h"
#include "layer/scheme/not_converted.h"
#include "layer/scheme/scheme.h"

namespace gearshift {

class RoutedNvfp4 {
 public:
  // nullopt: the dictionary says nothing of the kind. Error unsupported_scheme: another algorithm.
  static Result<std::optional<RoutedNvfp4>> parse(const QuantConfig& quant);

  // Whether the module's tensors must be NVFP4.
  bool covers(const ModuleTensors& module) const;
  Result<ModuleScheme> read(const ModuleTensors& module) const;
  Result<std::vector<ExpectedTensor>> expected(int64_t n, int64_t k) const;

 private:
  std::string subject_;
  bool compressed_tensors_ = false;  // names and directions of compressed-tensors; else ModelOpt's
  bool weight_only_ = false;
  ExcludeList others_;  // experts that keep the checkpoint's first scheme
};

// What a checkpoint of one 8-bit scheme says of its modules.
struct ConvertedModules {
  std::optional<RoutedNvfp4> routed;
  NotConverted not_converted;
  // Errors: those of both.
  static Result<ConvertedModules> parse(const QuantConfig& quant);
};

}  // namespace gearshift
