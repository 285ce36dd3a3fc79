// What layers run as: kernels by batch range, shared by many groups of layers.
#pragma once

#include <string>
#include <vector>

#include "report/layer_groups.h"

namespace gearshift {

// One way of running, and the groups that have it.
struct RunsAs {
  std::string letter;  // "A", "B" ... "Z", "AA"
  const LayerGroup* first = nullptr;
  std::vector<size_t> groups;  // indices
};
// Groups with equal ranges, kernels, arithmetic and fallback run as one; in order of their first groups.
std::vector<RunsAs> runs_of(const std::vector<LayerGroup>& groups);
// The letter of group `index`.
const std::string& letter_of(const std::vector<RunsAs>& runs, size_t index);

// "A", "Z", "AA", "AB" ...
std::string letters(size_t number);
// The kernel, and the tactic where one was chosen: "KERNEL (TACTIC)".
std::string name_of(const PlannedRange& range);
// "e2m1 x nvfp4".
std::string arithmetic_text(const Decision& decision, const PlannedRange& range);
// Why this kernel serves this range, in a few words: "first in the list", "asked for", "measured", "after KERNEL
// (device: isa)".
std::string why_text(const Decision& decision, const PlannedRange& range);

}  // namespace gearshift
