// AWQ's tensors in its "gemm" order, which AutoRound and GPTQModel write, too (formats.md 6).
#pragma once

#include "layer/scheme/scheme.h"

namespace gearshift::awq {

struct Arguments {
  int64_t bits = 4;
  int64_t group = 128;     // -1: one group a row
  bool symmetric = false;  // zero point 8, stored all the same
  std::string subject;     // for messages: the config key of `bits`
};

Result<ModuleScheme> read_module(const ModuleTensors& module, const Arguments& arguments);
// The tensors of such a module.
std::vector<ExpectedTensor> expected_tensors(const Arguments& arguments, int64_t n, int64_t k);

}  // namespace gearshift::awq
