// Arithmetic peaks: loops that do nothing but issue one instruction on registers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "gearshift/device.h"

namespace gearshift {

struct Peak {
  std::string_view name;         // "fp32", "bf16", "int8"
  std::string_view unit;         // "GFLOP/s", "GOP/s"
  std::string_view instruction;  // what sets this ceiling: "vpdpbusd"
  double operations;             // of one round on one thread; a multiplication and its addition are two
  void (*run)(int64_t rounds);
};

// fp32, bf16 and int8 with the best instructions of `isa`. Where a type has no dot product of its own the ceiling is
// that of the best detour: bf16 widened to fp32, int8 through 16-bit sums.
// REQUIRES: this processor executes `isa`.
std::array<Peak, 3> peaks_for(Isa isa);

}  // namespace gearshift
