// GPTQ's tensors, which AutoRound and GPTQModel write, too (formats.md 5.2, 5.3).
#pragma once

#include "layer/scheme/scheme.h"

namespace gearshift::gptq {

struct Arguments {
  int64_t bits = 4;
  int64_t group = 128;  // -1: one group a row
  bool symmetric = true;
  bool act_order = false;              // columns may belong to groups in any order
  Storage storage = Storage::gptq_v1;  // or gptq_v2
  std::string subject;                 // for messages: the config key of `bits`
};

Result<ModuleScheme> read_module(const ModuleTensors& module, const Arguments& arguments);
// The tensors of such a module; the group index where columns may be out of order.
std::vector<ExpectedTensor> expected_tensors(const Arguments& arguments, int64_t n, int64_t k);

}  // namespace gearshift::gptq
