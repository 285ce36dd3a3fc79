// Where measured times overrule the order of a list.
#pragma once

#include "plan/choice.h"

namespace gearshift {

// The batch size that speaks for m: the largest measured one that is not larger, so that the last one speaks for
// everything above; 0 below the first. The one bucket rule: tuning measures points, planning makes ranges of them,
// `run` looks the range up. REQUIRES: points ascend.
int64_t bucket_of(int64_t m, const std::vector<int64_t>& points);

// A measurement with fewer samples says too little to overrule anything.
inline constexpr int kFewestSamples = 5;

// Whether `challenger` is faster by more than noise: three times the standard error of the difference of the medians,
// at least 2 %, which is what two runs of one program differ by. Ties go to the incumbent.
bool beats(const MeasuredTime& challenger, const MeasuredTime& incumbent);

// "nvfp4_rows16_dot4/1": how rows of a store name a layout.
inline std::string key_of(const Layout& layout) {
  return std::string(layout.name) + "/" + std::to_string(layout.version);
}

// The times that apply, by candidate and batch size: of this kernel version, layout, layer class, dtype, mode and
// number of threads, with enough samples. Of several tactics the one that wins: the kernel's own choice, unless another
// beats it.
std::vector<MeasuredPoints> measured_points(const Choice& choice);

// The assignments of choice.layout with every piece given to the candidate (and tactic) of the same tier and layout
// that beats the one in list order at the piece's bucket. Pieces are cut at measured points; `measured_at` names the
// point.
std::vector<Assignment> with_measurements(const Choice& choice);

}  // namespace gearshift
