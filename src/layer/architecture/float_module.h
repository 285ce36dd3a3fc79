// The modules of a model as its float checkpoint stores them, by the config alone: names and shapes.
#pragma once

#include "gearshift/base.h"

namespace gearshift {

// A module that holds a matrix: a linear layer [n,k], an embedding, or a stack of them [experts,n,k].
struct FloatModule {
  std::string name;
  int64_t n = 0, k = 0;
  int64_t experts = 0;      // of a stack whose tensors hang off the parent (experts.gate_up_proj); 0: a plain matrix
  bool transposed = false;  // the stack is stored [experts,k,n]
  bool bias = false;
  bool draft = false;   // belongs to a multi-token prediction layer
  std::string tied_to;  // a head that shares this embedding; "" has its own weight
};

}  // namespace gearshift
