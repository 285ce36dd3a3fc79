// Who serves which batch sizes, and from which packed layout: the part of selection that sees neither layer nor device.
#pragma once

#include "gearshift/kernel.h"
#include "plan/batch_set.h"

namespace gearshift {

// A candidate that passed its gates.
struct Contender {
  size_t candidate = 0;  // its position in the list
  int tier = 0;          // 0: requested (or nothing was requested); 1: serves what tier 0 leaves over
  BatchSet allowed;      // contract, less quarantines
  BatchRange preferred;  // where its list line wants it
  const Layout* layout = &checkpoint_layout;
};

struct Assignment {
  BatchRange range;
  size_t candidate = 0;
  int64_t measured_at = 0;       // the batch size whose measurements decided; 0: list order
  std::string_view tactic = {};  // of the candidate's kernel; "": as it chooses
};

// For each batch size the first contender, in this order: lower tier; inside its preferred range before outside it
// (outside: where nothing else is left); list order. Neighbours with the same winner are merged, ascending; batch sizes
// that nobody allows are missing. REQUIRES: contenders in list order.
std::vector<Assignment> assign(const std::vector<Contender>& contenders);

// Beside the checkpoint's own bytes, which cost nothing, a layer has one packed layout.
struct LayoutChoice {
  const Layout* packed = nullptr;  // nullptr: every assigned contender reads the checkpoint's bytes
  bool several = false;            // the memory budget pays for every layout that is used
  std::vector<Assignment> assignments;
};
// The layout of the first contender (lower tier, then list order) that gets a batch size with it. A layout that would
// leave batch sizes unserved, or take some from tier 0, yields to a later one that does not.
LayoutChoice choose_layout(const std::vector<Contender>& contenders);

// Every contender where it is best, whatever it reads: for layers whose second layouts are paid for.
LayoutChoice any_layouts(const std::vector<Contender>& contenders);

BatchSet batches(const std::vector<Assignment>& assignments);

}  // namespace gearshift
