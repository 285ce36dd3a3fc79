// What an earlier plan chose, in the place of the automatic choice.
#pragma once

#include "plan/choice.h"

namespace gearshift {

struct Pinned {
  LayoutChoice layout;                // of the kernels that the record names; complete only without refusals
  std::vector<std::string> refusals;  // why the record can't be kept: one for each kernel and range concerned
};
// Looks the record's kernels up among the candidates of `choice`: gates hold for them as for all others, order and
// requests do not.
Pinned pin(const RecordedLayer& record, const Choice& choice);

}  // namespace gearshift
