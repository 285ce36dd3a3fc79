// What tuning reports of its times.
#pragma once

#include "pipeline/prover.h"
#include "pipeline/tune_group.h"

namespace gearshift {

// Rows of every time that is known of these groups, the sums by batch size, and how far the plan is from the best of
// them. report.plan is the plan now; `before` and `listed` those before tuning and by the lists alone, of the same
// layers.
void add_times(TuneReport& report, const Plan& before, const Plan& listed, const std::vector<TuneGroup>& groups,
               const Session& session, const Prover& prover);

}  // namespace gearshift
