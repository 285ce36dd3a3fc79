#include "pipeline/tune_times.h"

#include <algorithm>
#include <map>
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

std::vector<ServedTime> served_times(const Plan& now, const Plan& listed, const std::vector<TuneGroup>& groups) {
  std::vector<ServedTime> times;
  for (size_t g = 0; g < groups.size(); ++g) {
    const TuneGroup& group = groups[g];
    for (const int64_t m : std::set<int64_t>(listed.policy.batch.begin(), listed.policy.batch.end())) {
      const MeasuredTime* by_list = group.time_of({range_for(group.listed(), m).kernel, ""}, m);
      // A budget for second layouts may reach some layers of a group and not the others.
      for (size_t i = 0; i < listed.layers.size() && by_list != nullptr; ++i) {
        if (listed.layers[i].decision.get() != &group.listed()) continue;
        const Decision& own = *now.layers[i].decision;
        const PlannedRange& range = range_for(own, m);
        const RaceEntry chosen{range.kernel, std::string(range.tactic)};
        const MeasuredTime* time = group.time_of(chosen, m);
        if (time == nullptr) continue;
        ServedTime served{g, m, chosen, chosen, by_list->median_us, time->median_us, time->median_us};
        for (const RaceEntry& entry : group.entries()) {
          const MeasuredTime* other = serves(own, *entry.kernel) ? group.time_of(entry, m) : nullptr;
          if (other == nullptr || other->median_us >= served.best_us) continue;
          served.best = entry;
          served.best_us = other->median_us;
        }
        times.push_back(std::move(served));
      }
    }
  }
  return times;
}

void add_times(TuneReport& report, const Plan& before, const Plan& listed, const std::vector<TuneGroup>& groups,
               const Session& session, const Prover& prover) {
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
    }
  }
  std::map<int64_t, TunedBatch> sums;
  for (const ServedTime& time : served_times(report.plan, listed, groups)) {
    TunedBatch& sum = sums[time.m];
    sum.m = time.m;
    sum.static_us += time.static_us;
    sum.chosen_us += time.chosen_us;
    sum.best_us += time.best_us;
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
