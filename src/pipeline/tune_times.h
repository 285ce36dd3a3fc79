// What tuning reports of its times.
#pragma once

#include "pipeline/prover.h"
#include "pipeline/tune_group.h"

namespace gearshift {

// One layer at one batch size of the policy, where the times of what serves it are known.
struct ServedTime {
  size_t group = 0;  // position in `groups`
  int64_t m = 0;
  RaceEntry chosen, best;  // the plan's, and the fastest that the plan could give it
  double static_us = 0, chosen_us = 0, best_us = 0;
};
std::vector<ServedTime> served_times(const Plan& now, const Plan& listed, const std::vector<TuneGroup>& groups);

// Rows of every time that is known of these groups, the sums by batch size, and how far the plan is from the best of
// them. report.plan is the plan now; `before` and `listed` those before tuning and by the lists alone, of the same
// layers.
void add_times(TuneReport& report, const Plan& before, const Plan& listed, const std::vector<TuneGroup>& groups,
               const Session& session, const Prover& prover);

}  // namespace gearshift
