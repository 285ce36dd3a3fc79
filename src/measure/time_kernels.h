// Times kernels on one prepared layer at one batch size.
#pragma once

#include "measure/tune_device.h"

namespace gearshift {

struct RaceConditions {
  int64_t m = 1;
  DType dtype = DType::bf16;
  std::string mode = "eager";
  uint64_t seed = 0;
  int threads = 1;
  int64_t memory_limit = 0;  // bytes of activations, outputs and scratch; 0: none
  RaceRules rules;
};
struct RaceResult {
  std::optional<Timing> timing;
  std::string why_not;  // "memory: needs 1.2 MB, 1 MB may be used"; without a time it is not measured, never slow
};
// One result per entry. Weights are cold before every lap; activations are those of the layer: made up within the range
// its scales were made for. REQUIRES: the kernels' layouts are packed and each was proven at m.
std::vector<RaceResult> time_kernels(const PreparedLayer& layer, int64_t expert, const std::vector<RaceEntry>& entries,
                                     size_t incumbent, const RaceConditions& conditions, const TuneDevice& device);

}  // namespace gearshift
