// What was proven wrong (and later: what was measured), per environment. Decides nothing; names kernels by text.
#pragma once

#include "gearshift/base.h"

namespace gearshift {

// A kernel that gave wrong numbers for a layer class in a range of batch sizes; never chosen there again.
struct Quarantine {
  std::string kernel;
  int kernel_version = 1;
  std::string layer_class;
  std::string dtype;                 // activations: "BF16"
  int64_t m_min = 1, m_max = 0;      // m_max 0: no bound
  std::string reason;                // "row 3 is 0.12 off where 0.004 is allowed (m = 17)"
};

struct Store {
  std::vector<Quarantine> quarantines;
};

}  // namespace gearshift
