#include "pipeline/tune_times.h"

#include <algorithm>
#include <set>

#include "pipeline/measurement.h"

namespace gearshift {

namespace {

// The plan could give this kernel to the layer.
bool serves(const Decision& decision, const Kernel& kernel) {
  return std::any_of(decision.candidates.begin(), decision.candidates.end(), [&](const Verdict& verdict) {
    return verdict.kernel == &kernel && verdict.kind != VerdictKind::rejected;
  });
}

// What the store or this process knows about the numbers of a kernel at a batch size.
Comparison proof_of(const RaceEntry& entry, const std::string& layer_class, int64_t m, const Session& session,
                    const Prover& prover) {
  const auto found = prover.comparisons().find({layer_class, entry.kernel, entry.tactic, m});
  if (found != prover.comparisons().end()) return found->second;
  Comparison comparison;
  comparison.ok = session.is_proven(*entry.kernel, layer_class, m, entry.tactic);
  return comparison;
}

}  // namespace

void add_times(TuneReport& report, const Plan& before, const Plan& listed, const std::vector<TuneGroup>& groups,
               const Session& session, const Prover& prover) {
  const auto& batch = listed.policy.batch;
  std::map<int64_t, TunedBatch> sums;
  for (const TuneGroup& group : groups) {
    const Decision& now = *report.plan.layers[group.row()].decision;
    const Decision& earlier = *before.layers[group.row()].decision;
    std::set<int64_t> points;
    for (const MeasuredTime& time : session.store.times) {
      if (time.layer_class == group.layer_class()) points.insert(time.m);
    }
    for (const int64_t m : points) {
      for (const RaceEntry& entry : group.entries()) {
        const MeasuredTime* time = group.time_of(entry, m);
        if (time == nullptr) continue;
        TunedRow row{measurement_of(group.layer(), *entry.kernel, session.dtype(), m),
                     std::string(range_for(now, m).kernel->name), std::string(range_for(earlier, m).kernel->name),
                     std::string(range_for(now, m).tactic)};
        row.measurement.tactic = entry.tactic;
        set_timing(row.measurement, {time->median_us, time->p10_us, time->p90_us, time->samples, time->error_us},
                   session.dtype(), 1);
        row.measurement.comparison = proof_of(entry, group.layer_class(), m, session, prover);
        report.rows.push_back(std::move(row));
      }
      if (std::find(batch.begin(), batch.end(), m) == batch.end()) continue;
      const MeasuredTime* by_list = group.time_of({range_for(group.listed(), m).kernel, ""}, m);
      // A budget for second layouts may reach some layers of a group and not the others.
      for (size_t i = 0; i < listed.layers.size(); ++i) {
        if (listed.layers[i].decision.get() != &group.listed()) continue;
        const Decision& own = *report.plan.layers[i].decision;
        const PlannedRange& range = range_for(own, m);
        const MeasuredTime* chosen = group.time_of({range.kernel, std::string(range.tactic)}, m);
        if (chosen == nullptr || by_list == nullptr) continue;
        double best = chosen->median_us;
        for (const RaceEntry& entry : group.entries()) {
          const MeasuredTime* time = serves(own, *entry.kernel) ? group.time_of(entry, m) : nullptr;
          if (time != nullptr) best = std::min(best, time->median_us);
        }
        TunedBatch& sum = sums[m];
        sum.m = m;
        sum.static_us += by_list->median_us;
        sum.chosen_us += chosen->median_us;
        sum.best_us += best;
      }
    }
  }
  double chosen = 0, best = 0;
  for (const auto& [m, sum] : sums) {
    chosen += sum.chosen_us;
    best += sum.best_us;
    report.batch.push_back(sum);
  }
  if (best > 0) report.oracle_gap = chosen / best;
}

}  // namespace gearshift
