// What a person can do to get a kernel that was not chosen.
#pragma once

#include <string>

#include "gearshift/plan.h"

namespace gearshift {

// "--linear-backend native", "k: a multiple of 256 instead of 1824": the one thing that stands in the way, by the stage
// that refused. "" for the selected kernel and where nothing is known.
std::string what_would_change_it(const Verdict& verdict, const LayerPlan& row);

// The same as the end of a sentence, which promises no more than that: "to get it: ..." or "it needs ...".
std::string how_to_get_it(const Verdict& verdict, const LayerPlan& row);

}  // namespace gearshift
