#include "pipeline/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/text.h"
#include "base/try.h"
#include "pipeline/measurement.h"
#include "plan/measured.h"
#include "store/bundle.h"
#include "store/entry.h"

namespace gearshift {

namespace {

// A candidate this many times slower than the fastest at the two batch sizes below, and not catching up from one to the
// other, is not tried at the next one.
constexpr double hopeless_factor = 2;
constexpr double catching_up = 0.8;
// Where two kernels differ by less than this at both ends, it does not matter where between them the switch is.
constexpr double worth_a_switch = 1.05;
// Two measured batch sizes this near (an eighth of the lower one) need no third between them.
constexpr int64_t fineness = 8;
// Measurements that one layer class may cost beyond the batch sizes asked for.
constexpr int most_refinements = 24;
// How long one process waits for another's results, seconds.
constexpr double patience_s = 1;
// What a race costs on average where the results stay open, seconds; what one saves, a later one may take, up to the
// last number. The first ones have something to begin with.
constexpr double race_s = 1, first_savings_s = 4, longest_race_s = 8;
// First launches up to this batch size cost nothing: one child process does them all.
constexpr int64_t small_batch = 64;

// Batch sizes behind a process that died, or that measures what we need, are asked for again this often.
constexpr auto pause = std::chrono::milliseconds(20);

bool allows(const Contract& contract, int64_t m) {
  return m >= contract.m.min && (contract.m.max == 0 || m <= contract.m.max) &&
         m % std::max<int64_t>(1, contract.m.multiple) == 0;
}

std::string line_of(const LayerPlan& row) {
  std::string line = row.layer.name + ":";
  for (const PlannedRange& range : row.decision->ranges)
    line += fmt::format(" {}..{} {}", range.m_min, range.m_max, range.kernel->name);
  return line;
}

std::vector<int64_t> ascending(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

}  // namespace

// ---- what there is to measure
// -----------------------------------------------------------------------------------------

std::vector<Tuner::Group> Tuner::groups_of(const Plan& listed) const {
  std::vector<Group> groups;
  std::set<const Decision*> seen;
  for (size_t row = 0; row < listed.layers.size(); ++row) {
    const auto& decision = listed.layers[row].decision;
    if (!seen.insert(decision.get()).second) continue;
    Group group{row, decision, {}, false};
    for (const int64_t m : listed.policy.batch) group.tunable = group.tunable || candidates(group, m).size() > 1;
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<const Kernel*> Tuner::candidates(const Group& group, int64_t m) const {
  std::vector<const Kernel*> kernels;
  for (const Verdict& verdict : group.listed->candidates) {
    if (verdict.kind == VerdictKind::rejected || !allows(verdict.kernel->contract, m)) continue;
    const bool wrong =
        std::any_of(session_.store.quarantines.begin(), session_.store.quarantines.end(), [&](const Quarantine& row) {
          return row.kernel == verdict.kernel->name && row.kernel_version == verdict.kernel->version &&
                 row.layer_class == group.listed->layer_class && row.dtype == name(session_.dtype()) &&
                 m >= row.m_min && (row.m_max == 0 || m <= row.m_max);
        });
    if (!wrong && !is_hopeless(group, *verdict.kernel, m)) kernels.push_back(verdict.kernel);
  }
  return kernels;
}

const MeasuredTime* Tuner::time_of(const Kernel& kernel, const std::string& layer_class, int64_t m) const {
  for (const MeasuredTime& time : session_.store.times) {
    if (time.m == m && time.kernel == kernel.name && time.kernel_version == kernel.version &&
        time.layer_class == layer_class && time.layout == key_of(*kernel.layout) &&
        time.dtype == name(session_.dtype()) && time.mode == session_.settings().policy.mode &&
        time.threads == session_.threads() && time.tactic.empty())
      return &time;
  }
  return nullptr;
}

bool Tuner::is_hopeless(const Group& group, const Kernel& kernel, int64_t m) const {
  if (&kernel == range_for(*group.listed, m).kernel) return false;
  std::vector<double> times_slower;  // from the nearest batch size down
  for (auto point = group.points.rbegin(); point != group.points.rend() && times_slower.size() < 2; ++point) {
    if (*point >= m) continue;
    std::optional<double> fastest;
    for (const Verdict& verdict : group.listed->candidates) {
      const MeasuredTime* time = time_of(*verdict.kernel, group.listed->layer_class, *point);
      if (time != nullptr && (!fastest || time->median_us < *fastest)) fastest = time->median_us;
    }
    const MeasuredTime* own = time_of(kernel, group.listed->layer_class, *point);
    if (!fastest) return false;
    if (own == nullptr) return true;  // left out there already
    times_slower.push_back(own->median_us / *fastest);
  }
  return times_slower.size() == 2 && std::min(times_slower[0], times_slower[1]) >= hopeless_factor &&
         times_slower[0] >= catching_up * times_slower[1];
}

// ---- one race
// -------------------------------------------------------------------------------------------------------------

bool Tuner::out_of_time() const {
  const double budget = session_.settings().time_budget_s;
  return budget > 0 && device_.now_s() - started_s_ >= budget;
}

void Tuner::leave_out(const Group& group, int64_t m, std::string_view kernel, const std::string& why) {
  not_measured_.push_back(
      fmt::format("{}, M {}{}{}: {}", session_.rows()[group.row].name, m, kernel.empty() ? "" : ", ", kernel, why));
}

void Tuner::quarantine(const Group& group, const Kernel& kernel, const ProofFailure& failure) {
  const PlannedRange& range = range_for(*group.listed, failure.m);
  Quarantine quarantine{std::string(kernel.name),
                        kernel.version,
                        group.listed->layer_class,
                        std::string(name(session_.dtype())),
                        range.m_min,
                        range.m_max,
                        fmt::format("{} (layer {}, m = {})", failure.what, session_.rows()[group.row].name, failure.m)};
  session_.quarantine(quarantine, kernel, fmt::format("tune, seed {}", session_.settings().seed));
}

void Tuner::show_progress(const Group& group, int64_t m) {
  if (!progress_) return;
  const double spent = device_.now_s() - started_s_;
  std::string what = fmt::format("{}, M {}", session_.rows()[group.row].name, m);
  if (done_ > 0)
    what =
        fmt::format("about {:.0f} s left, {}",
                    spent / static_cast<double>(done_) * static_cast<double>(total_ - std::min(done_, total_)), what);
  progress_(done_, total_, what);
}

Result<Tuner::Outcome> Tuner::measure(Group& group, PreparedLayer& prepared, Judge& judge, int64_t m) {
  const std::string& layer_class = group.listed->layer_class;
  std::vector<const Kernel*> kernels = candidates(group, m);
  if (kernels.size() < 2) return Outcome::impossible;
  if (out_of_time()) {
    leave_out(group, m, "", "the time budget is spent");
    return Outcome::impossible;
  }
  const auto known = [&](const Kernel* kernel) { return time_of(*kernel, layer_class, m) != nullptr; };
  const auto reuse = [&] {
    ++reused_;
    group.points.push_back(m);
    group.points = ascending(std::move(group.points));
    return Outcome::reused;
  };
  if (std::all_of(kernels.begin(), kernels.end(), known)) return reuse();
  StoreEntry key = session_.entry(EntryKind::measurement, *kernels.front(), layer_class, m);
  key.kernel = key.layout = "", key.kernel_version = 0;
  const std::string work = key_text(key);
  if (!session_.file().claim(work)) return Outcome::busy;
  // Whoever had it before us may have finished it.
  session_.reload();
  if (std::all_of(kernels.begin(), kernels.end(), known)) {
    session_.file().release(work);
    return reuse();
  }

  std::vector<RaceEntry> entries;
  for (const Kernel* kernel : kernels) {
    GEARSHIFT_CHECK(add_layout(prepared, *kernel->layout, session_.threads()));
    if (const auto failure = prover_.prove_at(*kernel, prepared, 0, {m}, judge)) {
      quarantine(group, *kernel, *failure);
      continue;
    }
    entries.push_back({kernel, ""});
  }
  // A quarantine may have taken the default away: then the lists name another.
  GEARSHIFT_TRY(const Plan listed, session_.plan_row(registry_, group.row, "static"));
  const Kernel* incumbent = range_for(*listed.layers[0].decision, m).kernel;
  const auto first =
      std::find_if(entries.begin(), entries.end(), [&](const RaceEntry& entry) { return entry.kernel == incumbent; });
  if (entries.size() < 2 || first == entries.end()) {
    session_.file().release(work);
    return Outcome::impossible;
  }
  RaceConditions conditions;
  conditions.m = m;
  conditions.dtype = session_.dtype();
  conditions.mode = session_.settings().policy.mode;
  conditions.seed = session_.settings().seed;
  conditions.threads = session_.threads();
  conditions.memory_limit = session_.settings().memory_limit;
  const double share_us = std::clamp(savings_s_, race_s / 2, longest_race_s) * 1e6;
  conditions.rules.budget_us = std::min(share_us, race_s * 1e6);
  conditions.rules.open_us = share_us;
  conditions.rules.end_us = std::max(share_us, longest_race_s * 1e6 / 2);
  const double begun_s = device_.now_s();
  const auto position = static_cast<size_t>(first - entries.begin());
  const std::vector<RaceResult> results = time_kernels(prepared, 0, entries, position, conditions, device_);
  savings_s_ += race_s - (device_.now_s() - begun_s);
  std::vector<StoreEntry> rows;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!results[i].timing) {
      leave_out(group, m, entries[i].kernel->name, results[i].why_not);
      continue;
    }
    StoreEntry row = session_.entry(EntryKind::measurement, *entries[i].kernel, layer_class, m);
    row.median_us = results[i].timing->median_us;
    row.p10_us = results[i].timing->p10_us;
    row.p90_us = results[i].timing->p90_us;
    row.samples = results[i].timing->samples;
    row.evidence = fmt::format("cold weights, {} candidates in turn", entries.size());
    rows.push_back(std::move(row));
  }
  const bool any = !rows.empty();
  // What others cannot see yet stays ours: they would measure it again.
  if (session_.keep(std::move(rows))) session_.file().release(work);
  if (!any) return Outcome::impossible;
  ++measured_;
  group.points.push_back(m);
  group.points = ascending(std::move(group.points));
  return Outcome::measured;
}

// ---- one layer class
// ------------------------------------------------------------------------------------------------------

Result<void> Tuner::tune_group(Group& group) {
  GEARSHIFT_TRY(const Plan listed, session_.plan_row(registry_, group.row, "static"));
  GEARSHIFT_TRY(PreparedLayer prepared, prepare(session_.checkpoint(), listed.layers[0], session_.threads()));
  Judge judge(prepared.weights.front(), session_.settings().seed, session_.threads());
  launch_small_batches(group, prepared);
  for (const int64_t m : ascending(session_.settings().policy.batch)) {
    show_progress(group, m);
    GEARSHIFT_TRY(const Outcome outcome, measure(group, prepared, judge, m));
    if (outcome == Outcome::busy) busy_.emplace_back(group.row, m);
    ++done_;
  }
  GEARSHIFT_CHECK(refine(group, prepared, judge));
  return prove_edges(group, prepared, judge);
}

// What fails here fails its proof, which is the same launch.
void Tuner::launch_small_batches(const Group& group, const PreparedLayer& prepared) {
  std::map<const Kernel*, std::vector<int64_t>> sizes_of;
  for (const int64_t m : ascending(session_.settings().policy.batch)) {
    const std::vector<const Kernel*> kernels = m <= small_batch ? candidates(group, m) : std::vector<const Kernel*>{};
    if (kernels.size() < 2) continue;
    for (const Kernel* kernel : kernels) sizes_of[kernel].push_back(m);
  }
  for (const Verdict& verdict : group.listed->candidates) {
    const auto sizes = sizes_of.find(verdict.kernel);
    if (sizes != sizes_of.end() && !out_of_time()) prover_.launch_apart(*sizes->first, *prepared.plan, sizes->second);
  }
}

// Whether it is worth knowing between which of two batch sizes one kernel takes over from another.
bool Tuner::matters(const Group& group, const Kernel& a, const Kernel& b, int64_t low, int64_t high) const {
  for (const int64_t m : {low, high}) {
    const MeasuredTime *time_a = time_of(a, group.listed->layer_class, m),
                       *time_b = time_of(b, group.listed->layer_class, m);
    if (time_a == nullptr || time_b == nullptr) return true;
    const auto [least, most] = std::minmax(time_a->median_us, time_b->median_us);
    if (most >= worth_a_switch * least) return true;
  }
  return false;
}

Result<void> Tuner::refine(Group& group, PreparedLayer& prepared, Judge& judge) {
  std::set<int64_t> given_up;
  for (int i = 0; i < most_refinements && !out_of_time(); ++i) {
    GEARSHIFT_TRY(const Plan plan, session_.plan_row(registry_, group.row, "measured"));
    std::optional<int64_t> middle;
    for (size_t p = 1; p < group.points.size() && !middle; ++p) {
      const int64_t low = group.points[p - 1], high = group.points[p];
      const Decision& decision = *plan.layers[0].decision;
      const Kernel &below = *range_for(decision, low).kernel, &above = *range_for(decision, high).kernel;
      if (&below == &above || !matters(group, below, above, low, high)) continue;
      const int64_t between = low + (high - low) / 2;
      if (high - low > std::max<int64_t>(1, low / fineness) && given_up.count(between) == 0) middle = between;
    }
    if (!middle) break;
    show_progress(group, *middle);
    GEARSHIFT_TRY(const Outcome outcome, measure(group, prepared, judge, *middle));
    if (outcome == Outcome::impossible || outcome == Outcome::busy) given_up.insert(*middle);
  }
  return {};
}

Result<void> Tuner::prove_edges(const Group& group, PreparedLayer& prepared, Judge& judge) {
  // Every failure takes a kernel out of a range, so this ends.
  for (bool changed = true; changed;) {
    changed = false;
    GEARSHIFT_TRY(const Plan plan, session_.plan_row(registry_, group.row, "measured"));
    for (const PlannedRange& range : plan.layers[0].decision->ranges) {
      GEARSHIFT_CHECK(add_layout(prepared, *range.kernel->layout, session_.threads()));
      std::vector<int64_t> edges = {range.m_min};
      if (range.m_max != 0) edges.push_back(range.m_max);
      const auto failure = prover_.prove_at(*range.kernel, prepared, 0, ascending(edges), judge);
      if (!failure) continue;
      Quarantine wrong{
          std::string(range.kernel->name),
          range.kernel->version,
          group.listed->layer_class,
          std::string(name(session_.dtype())),
          range.m_min,
          range.m_max,
          fmt::format("{} (layer {}, m = {})", failure->what, session_.rows()[group.row].name, failure->m)};
      session_.quarantine(wrong, *range.kernel, fmt::format("tune, seed {}", session_.settings().seed));
      changed = true;
      break;
    }
  }
  return {};
}

// What other processes were at when we came by: their rows, if they are there within a second.
Result<void> Tuner::work_of_others(std::vector<Group>& groups) {
  const double until = device_.now_s() + patience_s;
  while (!busy_.empty()) {
    session_.reload();
    std::vector<std::pair<size_t, int64_t>> left;
    for (const auto& [row, m] : busy_) {
      const size_t wanted = row;
      const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.row == wanted; });
      GEARSHIFT_TRY(const Plan listed, session_.plan_row(registry_, group->row, "static"));
      GEARSHIFT_TRY(PreparedLayer prepared, prepare(session_.checkpoint(), listed.layers[0], session_.threads()));
      Judge judge(prepared.weights.front(), session_.settings().seed, session_.threads());
      GEARSHIFT_TRY(const Outcome outcome, measure(*group, prepared, judge, m));
      if (outcome == Outcome::busy) left.emplace_back(row, m);
    }
    busy_ = std::move(left);
    if (busy_.empty()) break;
    if (device_.now_s() >= until) {
      for (const auto& [row, m] : busy_)
        not_measured_.push_back(fmt::format("{}, M {}: another process is measuring it", session_.rows()[row].name, m));
      break;
    }
    std::this_thread::sleep_for(pause);
  }
  return {};
}

// ---- all of them
// ----------------------------------------------------------------------------------------------------------

Result<TuneReport> Tuner::run() {
  if (device_.capturing()) {
    ErrorInfo error;
    error.code = ErrorCode::usage;
    error.subject = "tune";
    error.found = "a graph being captured";
    error.wanted = "a stream that may be waited for";
    error.hint = "tune before capture; what is planned runs in a graph without it";
    return error;
  }
  GEARSHIFT_CHECK(session_.require_device());
  GEARSHIFT_CHECK(session_.require_whole_layers());
  GEARSHIFT_CHECK(session_.require_weights());
  GEARSHIFT_CHECK(session_.settle_column_orders());
  started_s_ = device_.now_s();
  savings_s_ = first_savings_s;
  GEARSHIFT_TRY(const Plan before, session_.plan(registry_));
  GEARSHIFT_CHECK(session_.require_memory(before));
  GEARSHIFT_TRY(const Plan listed, session_.plan(registry_, "static"));
  std::vector<Group> groups = groups_of(listed);
  TuneReport report;
  report.groups = groups.size();
  report.rank = ranks_.rank;
  report.ranks = ranks_.size;
  for (const Group& group : groups) {
    report.tunable += group.tunable ? 1 : 0;
    if (group.tunable) continue;
    const Kernel& only = *range_for(*group.listed, 1).kernel;
    not_measured_.push_back(
        fmt::format("{}: nothing to choose, only {} passes its gates", session_.rows()[group.row].name, only.name));
  }
  const auto batch = ascending(listed.policy.batch);
  for (size_t i = 0; i < groups.size(); ++i) total_ += groups[i].tunable && ranks_.ours(i) ? batch.size() : 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].tunable && ranks_.ours(i)) GEARSHIFT_CHECK(tune_group(groups[i]));
  }
  GEARSHIFT_CHECK(work_of_others(groups));
  if (progress_) progress_(total_, total_, "");

  if (ranks_.size > 1) GEARSHIFT_CHECK(agree());
  GEARSHIFT_TRY(report.plan, session_.plan(registry_));
  report.static_hash = listed.hash;
  report.measured = measured_;
  report.reused = reused_;
  report.quarantined = session_.found_wrong;
  report.not_measured = std::move(not_measured_);
  report.plan.notes.insert(report.plan.notes.end(), prover_.notes().begin(), prover_.notes().end());
  fill(report, before, listed, groups);
  return report;
}

// Rows go around, the slowest rank decides, and every rank sees that all have the same plan.
Result<void> Tuner::agree() {
  if (session_.file().off()) {
    return ErrorInfo{ErrorCode::usage,
                     "GEARSHIFT_STORE",
                     "off",
                     fmt::format("a store that the {} ranks share", ranks_.size),
                     "",
                     {}};
  }
  std::vector<StoreEntry> mine;
  for (StoreEntry& row : session_.file().entries()) {
    if (row.environment == session_.environment()) mine.push_back(std::move(row));
  }
  GEARSHIFT_TRY(const std::vector<std::string> bundles,
                exchange(ranks_, session_.file().path(), "rows", bundle_of(mine)));
  std::vector<std::vector<StoreEntry>> by_rank;
  std::vector<StoreEntry> quarantines;
  for (size_t rank = 0; rank < bundles.size(); ++rank) {
    GEARSHIFT_TRY(std::vector<StoreEntry> rows, read_bundle(bundles[rank], fmt::format("rows of rank {}", rank)));
    for (StoreEntry& row : rows) {
      row.environment = session_.environment();  // one plan for all, whatever the devices
      if (row.kind == EntryKind::quarantine) quarantines.push_back(row);
    }
    by_rank.push_back(std::move(rows));
  }
  session_.keep(std::move(quarantines));
  session_.store.times = slowest(by_rank);
  GEARSHIFT_TRY(const Plan plan, session_.plan(registry_));
  std::string lines = plan.hash + "\n";
  for (const LayerPlan& row : plan.layers) lines += line_of(row) + "\n";
  GEARSHIFT_TRY(const std::vector<std::string> plans, exchange(ranks_, session_.file().path(), "plan", lines));
  return check_agreement(plans);
}

void Tuner::fill(TuneReport& report, const Plan& before, const Plan& listed, const std::vector<Group>& groups) const {
  std::map<const Decision*, size_t> rows_of;
  for (const LayerPlan& row : listed.layers) ++rows_of[row.decision.get()];
  std::map<int64_t, TunedBatch> sums;
  for (const Group& group : groups) {
    const std::string& layer_class = group.listed->layer_class;
    const LayerSpec& layer = session_.rows()[group.row];
    const Decision& now = *report.plan.layers[group.row].decision;
    const Decision& earlier = *before.layers[group.row].decision;
    std::set<int64_t> points;
    for (const MeasuredTime& time : session_.store.times) {
      if (time.layer_class == layer_class) points.insert(time.m);
    }
    for (const int64_t m : points) {
      std::optional<double> best;
      for (const Verdict& verdict : group.listed->candidates) {
        const MeasuredTime* time =
            verdict.kind == VerdictKind::rejected ? nullptr : time_of(*verdict.kernel, layer_class, m);
        if (time == nullptr) continue;
        if (!best || time->median_us < *best) best = time->median_us;
        TunedRow row{measurement_of(layer, *verdict.kernel, session_.dtype(), m),
                     std::string(range_for(now, m).kernel->name), std::string(range_for(earlier, m).kernel->name)};
        set_timing(row.measurement, {time->median_us, time->p10_us, time->p90_us, time->samples}, session_.dtype(), 1);
        row.measurement.comparison = proof_of(*verdict.kernel, layer_class, m);
        report.rows.push_back(std::move(row));
      }
      const MeasuredTime* chosen = time_of(*range_for(now, m).kernel, layer_class, m);
      const MeasuredTime* by_list = time_of(*range_for(*group.listed, m).kernel, layer_class, m);
      const auto& batch = listed.policy.batch;
      if (!best || chosen == nullptr || by_list == nullptr || std::find(batch.begin(), batch.end(), m) == batch.end())
        continue;
      const double count = static_cast<double>(rows_of[group.listed.get()]);
      TunedBatch& sum = sums[m];
      sum.m = m;
      sum.static_us += count * by_list->median_us;
      sum.chosen_us += count * chosen->median_us;
      sum.best_us += count * *best;
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

// What the store or this process knows about the numbers of a kernel at a batch size.
Comparison Tuner::proof_of(const Kernel& kernel, const std::string& layer_class, int64_t m) const {
  Comparison comparison;
  comparison.ok = session_.is_proven(kernel, layer_class, m);
  if (const auto found = prover_.comparisons().find({layer_class, &kernel, m}); found != prover_.comparisons().end())
    return found->second;
  return comparison;
}

}  // namespace gearshift
