#include "pipeline/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "base/text.h"
#include "base/try.h"
#include "pipeline/tune_times.h"
#include "store/entry.h"

namespace gearshift {

namespace {

// Two measured batch sizes this near (an eighth of the lower one) need no third between them.
constexpr int64_t fineness = 8;
// Measurements that one layer class may cost beyond the batch sizes asked for.
constexpr int most_refinements = 24;
// What the plan may take over the best measured kernels before doubtful races are run again, and how many of them.
constexpr double accepted_gap = 1.01;
constexpr int most_repeats = 12;
// Repeats begin only within this time, seconds.
constexpr double repeats_s = 40;
// How long one process waits for another's results, seconds.
constexpr double patience_s = 1;
// What a race costs on average where the results stay open, seconds; what one saves, a later one may take, up to the
// last number. The first ones have something to begin with.
constexpr double race_s = 0.8, first_savings_s = 4, longest_race_s = 6;
// First launches up to this batch size cost nothing: one child process does them all.
constexpr int64_t small_batch = 64;

// Batch sizes behind a process that died, or that measures what we need, are asked for again this often.
constexpr auto pause = std::chrono::milliseconds(20);

std::vector<int64_t> ascending(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

}  // namespace

std::vector<TuneGroup> Tuner::groups_of(const Plan& listed) const {
  std::vector<TuneGroup> groups;
  std::set<const Decision*> seen;
  for (size_t row = 0; row < listed.layers.size(); ++row) {
    const auto& decision = listed.layers[row].decision;
    if (seen.insert(decision.get()).second) groups.emplace_back(session_, row, decision);
  }
  return groups;
}

// ---- one race -------------------------------------------------------------------------------------------------------

bool Tuner::out_of_time() const {
  const double budget = session_.settings().time_budget_s;
  return budget > 0 && device_.now_s() - started_s_ >= budget;
}

void Tuner::leave_out(const TuneGroup& group, int64_t m, const RaceEntry* entry, const std::string& why) {
  std::string who;
  if (entry != nullptr) who = fmt::format(", {}", entry->kernel->name);
  if (entry != nullptr && !entry->tactic.empty()) who += fmt::format(" ({})", entry->tactic);
  not_measured_.push_back(fmt::format("{}, M {}{}: {}", group.layer().name, m, who, why));
}

void Tuner::quarantine(const TuneGroup& group, const PlannedRange& range, const RaceEntry& entry,
                       const ProofFailure& failure) {
  Quarantine quarantine{std::string(entry.kernel->name),
                        entry.kernel->version,
                        group.layer_class(),
                        std::string(name(session_.dtype())),
                        range.m_min,
                        range.m_max,
                        fmt::format("{} (layer {}, m = {})", failure.what, group.layer().name, failure.m),
                        entry.tactic};
  session_.quarantine(quarantine, *entry.kernel, fmt::format("tune, seed {}", session_.settings().seed));
}

void Tuner::show_progress(const TuneGroup& group, int64_t m) {
  if (!progress_) return;
  const double spent = device_.now_s() - started_s_;
  std::string what = fmt::format("{}, M {}", group.layer().name, m);
  if (done_ > 0)
    what =
        fmt::format("about {:.0f} s left, {}",
                    spent / static_cast<double>(done_) * static_cast<double>(total_ - std::min(done_, total_)), what);
  progress_(done_, total_, what);
}

// The name under which one process at a time does this race.
std::string Tuner::work_of(const TuneGroup& group, int64_t m) const {
  const Kernel& any = *group.listed().candidates.front().kernel;
  StoreEntry key = session_.entry(EntryKind::measurement, any, group.layer_class(), m);
  key.kernel = key.layout = "", key.kernel_version = 0;
  return key_text(key);
}

Tuner::Outcome Tuner::reuse(TuneGroup& group, int64_t m) {
  ++reused_;
  group.add_point(m);
  return Outcome::reused;
}

Result<Tuner::Outcome> Tuner::measure(TuneGroup& group, PreparedLayer& prepared, Judge& judge, int64_t m) {
  if (group.candidates(m).size() < 2) return Outcome::impossible;
  if (out_of_time()) {
    leave_out(group, m, nullptr, "the time budget is spent");
    return Outcome::impossible;
  }
  if (group.is_known(m)) return reuse(group, m);
  const std::string work = work_of(group, m);
  if (!session_.file().claim(work)) return Outcome::busy;
  // Whoever had it before us may have finished it.
  session_.reload();
  if (group.is_known(m)) {
    session_.file().release(work);
    return reuse(group, m);
  }

  GEARSHIFT_TRY(const std::vector<RaceEntry> entries, proven(group, prepared, judge, m));
  // A quarantine may have taken the default away: then the lists name another.
  GEARSHIFT_TRY(const Plan listed, session_.plan_row(registry_, group.row(), "static"));
  const Kernel* incumbent = range_for(*listed.layers[0].decision, m).kernel;
  const auto first = std::find_if(entries.begin(), entries.end(), [&](const RaceEntry& entry) {
    return entry.kernel == incumbent && entry.tactic.empty();
  });
  if (entries.size() < 2 || first == entries.end()) {
    session_.file().release(work);
    return Outcome::impossible;
  }
  std::vector<StoreEntry> rows =
      race_of(group, prepared, entries, static_cast<size_t>(first - entries.begin()), m, rules_now());
  const bool any = !rows.empty();
  // What others cannot see yet stays ours: they would measure it again.
  if (session_.keep(std::move(rows))) session_.file().release(work);
  if (!any) return Outcome::impossible;
  ++measured_;
  raced_.insert({group.row(), m});
  group.add_point(m);
  return Outcome::measured;
}

Result<std::vector<RaceEntry>> Tuner::proven(const TuneGroup& group, PreparedLayer& prepared, Judge& judge, int64_t m) {
  std::vector<RaceEntry> right;
  const std::vector<RaceEntry> candidates = group.candidates(m);
  std::map<const Kernel*, std::vector<std::string>> tactics_of;
  for (const RaceEntry& entry : candidates) tactics_of[entry.kernel].push_back(entry.tactic);
  for (const auto& [kernel, tactics] : tactics_of) prover_.launch_together(*kernel, *prepared.plan, {m}, tactics);
  for (const RaceEntry& entry : candidates) {
    auto failure = prover_.launch_apart(*entry.kernel, *prepared.plan, {m}, entry.tactic);
    if (!failure) {
      GEARSHIFT_CHECK(add_layout(prepared, *entry.kernel->layout, session_.threads()));
      failure = prover_.prove_at(*entry.kernel, prepared, 0, {m}, judge, entry.tactic);
    }
    if (failure)
      quarantine(group, range_for(group.listed(), m), entry, *failure);
    else
      right.push_back(entry);
  }
  return right;
}

// What the next race may take of the time that earlier ones left over.
RaceRules Tuner::rules_now() const {
  RaceRules rules;
  const double share_us = std::clamp(savings_s_, race_s / 2, longest_race_s) * 1e6;
  rules.budget_us = std::min(share_us, race_s * 1e6);
  rules.open_us = share_us;
  rules.end_us = std::max(share_us, longest_race_s * 1e6 / 2);
  return rules;
}

std::vector<StoreEntry> Tuner::race_of(const TuneGroup& group, const PreparedLayer& prepared,
                                       const std::vector<RaceEntry>& entries, size_t incumbent, int64_t m,
                                       const RaceRules& rules) {
  RaceConditions conditions;
  conditions.m = m;
  conditions.dtype = session_.dtype();
  conditions.mode = session_.settings().policy.mode;
  conditions.seed = session_.settings().seed;
  conditions.threads = session_.threads();
  conditions.memory_limit = session_.settings().memory_limit;
  conditions.rules = rules;
  const double begun_s = device_.now_s();
  const std::vector<RaceResult> results = time_kernels(prepared, 0, entries, incumbent, conditions, device_);
  savings_s_ += race_s - (device_.now_s() - begun_s);
  std::vector<StoreEntry> rows;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!results[i].timing) {
      leave_out(group, m, &entries[i], results[i].why_not);
      continue;
    }
    const Timing& timing = *results[i].timing;
    StoreEntry row =
        session_.entry(EntryKind::measurement, *entries[i].kernel, group.layer_class(), m, entries[i].tactic);
    row.median_us = timing.median_us;
    row.p10_us = timing.p10_us;
    row.p90_us = timing.p90_us;
    row.error_us = timing.error_us;
    row.samples = timing.samples;
    row.evidence = fmt::format("cold weights, {} candidates in turn", entries.size());
    rows.push_back(std::move(row));
  }
  return rows;
}

// ---- one layer class
// ------------------------------------------------------------------------------------------------------

Result<Tuner::Prepared> Tuner::prepare_group(const TuneGroup& group) {
  GEARSHIFT_TRY(Plan listed, session_.plan_row(registry_, group.row(), "static"));
  launch_first(group, listed.layers[0]);
  // Without those that did not survive it.
  GEARSHIFT_TRY(listed, session_.plan_row(registry_, group.row(), "static"));
  Prepared made;
  made.plan = std::make_unique<const Plan>(std::move(listed));
  GEARSHIFT_TRY(PreparedLayer layer, prepare(session_.checkpoint(), made.plan->layers[0], session_.threads()));
  made.layer = std::make_unique<PreparedLayer>(std::move(layer));
  made.judge = std::make_unique<Judge>(made.layer->weights.front(), session_.settings().seed, session_.threads());
  return made;
}

Result<void> Tuner::tune_group(TuneGroup& group) {
  GEARSHIFT_TRY(Prepared layer, prepare_group(group));
  for (const int64_t m : ascending(session_.settings().policy.batch)) {
    show_progress(group, m);
    GEARSHIFT_TRY(const Outcome outcome, measure(group, *layer.layer, *layer.judge, m));
    if (outcome == Outcome::busy) busy_.emplace_back(group.row(), m);
    ++done_;
  }
  return settle(group, layer);
}

// After whatever changed a group's times: where its switches are now, and that both sides of them are right.
Result<void> Tuner::settle(TuneGroup& group, Prepared& layer) {
  GEARSHIFT_CHECK(refine(group, *layer.layer, *layer.judge));
  return prove_edges(group, *layer.layer, *layer.judge);
}

// Before anything of a kernel runs in this process, its packing included. What does not survive is quarantined.
void Tuner::launch_first(const TuneGroup& group, const LayerPlan& plan) {
  const std::vector<int64_t> batch = ascending(session_.settings().policy.batch);
  const std::vector<RaceEntry> entries = group.entries();
  std::vector<std::vector<int64_t>> sizes_of;
  std::map<std::pair<const Kernel*, std::vector<int64_t>>, std::vector<std::string>> tactics_of;
  for (const RaceEntry& entry : entries) {
    std::vector<int64_t> sizes;
    for (const int64_t m : batch) {
      if (m > small_batch && !sizes.empty()) break;
      const std::vector<RaceEntry> racing = group.candidates(m);
      const bool runs = std::find(racing.begin(), racing.end(), entry) != racing.end();
      if (runs && racing.size() > 1) sizes.push_back(m);
    }
    tactics_of[{entry.kernel, sizes}].push_back(entry.tactic);
    sizes_of.push_back(std::move(sizes));
  }
  for (const auto& [launches, tactics] : tactics_of) {
    if (out_of_time()) return;
    prover_.launch_together(*launches.first, plan, launches.second, tactics);
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (out_of_time()) return;
    if (const auto failure = prover_.launch_apart(*entries[i].kernel, plan, sizes_of[i], entries[i].tactic))
      quarantine(group, range_for(group.listed(), failure->m), entries[i], *failure);
  }
}

Result<void> Tuner::refine(TuneGroup& group, PreparedLayer& prepared, Judge& judge) {
  std::set<int64_t> given_up;
  for (int i = 0; i < most_refinements && !out_of_time(); ++i) {
    GEARSHIFT_TRY(const Plan plan, session_.plan_row(registry_, group.row(), "measured"));
    const Decision& decision = *plan.layers[0].decision;
    const std::vector<int64_t>& points = group.points();
    std::optional<int64_t> middle;
    for (size_t p = 1; p < points.size() && !middle; ++p) {
      const int64_t low = points[p - 1], high = points[p], between = low + (high - low) / 2;
      const bool near = high - low <= std::max<int64_t>(1, low / fineness);
      if (near || given_up.count(between) != 0) continue;
      if (group.matters(range_for(decision, low), range_for(decision, high), low, high)) middle = between;
    }
    if (!middle) break;
    show_progress(group, *middle);
    GEARSHIFT_TRY(const Outcome outcome, measure(group, prepared, judge, *middle));
    if (outcome == Outcome::impossible || outcome == Outcome::busy) given_up.insert(*middle);
  }
  return {};
}

Result<void> Tuner::prove_edges(const TuneGroup& group, PreparedLayer& prepared, Judge& judge) {
  // Every failure takes a kernel or a tactic out of a range, so this ends.
  for (bool changed = true; changed;) {
    changed = false;
    GEARSHIFT_TRY(const Plan plan, session_.plan_row(registry_, group.row(), "measured"));
    for (const PlannedRange& range : plan.layers[0].decision->ranges) {
      GEARSHIFT_CHECK(add_layout(prepared, *range.kernel->layout, session_.threads()));
      std::vector<int64_t> edges = {range.m_min};
      if (range.m_max != 0) edges.push_back(range.m_max);
      const auto failure = prover_.prove_at(*range.kernel, prepared, 0, ascending(edges), judge, range.tactic);
      if (!failure) continue;
      quarantine(group, range, {range.kernel, std::string(range.tactic)}, *failure);
      changed = true;
      break;
    }
  }
  return {};
}

// What other processes were at when we came by: their rows, if they are there within a second.
Result<void> Tuner::work_of_others(std::vector<TuneGroup>& groups) {
  const double until = device_.now_s() + patience_s;
  std::set<size_t> grown;
  while (!busy_.empty()) {
    session_.reload();
    std::vector<std::pair<size_t, int64_t>> left;
    for (const auto& [row, m] : busy_) {
      const size_t wanted = row;
      TuneGroup& group =
          *std::find_if(groups.begin(), groups.end(), [&](const TuneGroup& g) { return g.row() == wanted; });
      const std::string work = work_of(group, m);
      if (group.is_known(m)) {
        reuse(group, m);
        grown.insert(row);
      } else if (!session_.file().claim(work)) {
        left.emplace_back(row, m);
      } else {  // who was at it is gone, or got nowhere
        session_.file().release(work);
        GEARSHIFT_TRY(Prepared layer, prepare_group(group));
        GEARSHIFT_TRY(const Outcome outcome, measure(group, *layer.layer, *layer.judge, m));
        if (outcome == Outcome::busy) left.emplace_back(row, m);
        grown.insert(row);
      }
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
  for (TuneGroup& group : groups) {
    if (grown.count(group.row()) == 0) continue;
    GEARSHIFT_TRY(Prepared layer, prepare_group(group));
    GEARSHIFT_CHECK(settle(group, layer));
  }
  return {};
}

// Where the plan keeps what looks slower than another, the difference is within noise: more laps of both tell which it
// is. The races that cost the plan most come first.
Result<void> Tuner::close_gap(const Plan& listed, std::vector<TuneGroup>& groups) {
  std::set<std::pair<size_t, int64_t>> repeated;
  for (int i = 0; i < most_repeats && !out_of_time() && device_.now_s() - started_s_ < repeats_s; ++i) {
    GEARSHIFT_TRY(const Plan now, session_.plan(registry_));
    std::map<std::pair<size_t, int64_t>, std::pair<double, ServedTime>> losses;
    double chosen = 0, best = 0, most = 0;
    for (const ServedTime& time : served_times(now, listed, groups)) {
      chosen += time.chosen_us;
      best += time.best_us;
      auto& [loss, example] = losses[{time.group, time.m}];
      loss += time.chosen_us - time.best_us;
      example = time;
    }
    const ServedTime* worst = nullptr;
    for (const auto& [where, loss] : losses) {
      if (repeated.count(where) != 0 || raced_.count({groups[where.first].row(), where.second}) == 0 ||
          loss.first <= most)
        continue;
      most = loss.first;
      worst = &loss.second;
    }
    if (worst == nullptr || chosen <= accepted_gap * best) return {};
    repeated.insert({worst->group, worst->m});
    GEARSHIFT_CHECK(repeat(groups[worst->group], *worst));
  }
  return {};
}

// Twice the laps of before, so that the store takes them for the better rows.
Result<void> Tuner::repeat(TuneGroup& group, const ServedTime& doubtful) {
  const int64_t m = doubtful.m;
  std::vector<RaceEntry> entries = {{range_for(group.listed(), m).kernel, ""}};
  for (const RaceEntry& entry : {doubtful.chosen, doubtful.best}) {
    if (std::find(entries.begin(), entries.end(), entry) == entries.end()) entries.push_back(entry);
  }
  RaceRules rules;
  double lap_us = 0;
  for (const RaceEntry& entry : entries) {
    const MeasuredTime* time = group.time_of(entry, m);
    if (time == nullptr) return {};
    rules.samples = std::max(rules.samples, 2 * time->samples);
    lap_us += time->p90_us;
  }
  rules.most = rules.fewest = rules.samples;
  rules.budget_us = rules.open_us = rules.end_us = longest_race_s * 1e6;
  if (lap_us * rules.samples > rules.end_us) return {};
  const std::string work = work_of(group, m);
  if (!session_.file().claim(work)) return {};
  GEARSHIFT_TRY(Prepared layer, prepare_group(group));
  for (const RaceEntry& entry : entries)
    GEARSHIFT_CHECK(add_layout(*layer.layer, *entry.kernel->layout, session_.threads()));
  session_.keep(race_of(group, *layer.layer, entries, 0, m, rules));
  session_.file().release(work);
  return settle(group, layer);
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
  std::vector<TuneGroup> groups = groups_of(listed);
  TuneReport report;
  report.groups = groups.size();
  report.rank = ranks_.rank;
  report.ranks = ranks_.size;
  for (const TuneGroup& group : groups) {
    report.tunable += group.tunable() ? 1 : 0;
    if (group.tunable()) continue;
    const Kernel& only = *range_for(group.listed(), 1).kernel;
    not_measured_.push_back(
        fmt::format("{}: nothing to choose, only {} passes its gates", group.layer().name, only.name));
  }
  const auto batch = ascending(listed.policy.batch);
  for (size_t i = 0; i < groups.size(); ++i) total_ += groups[i].tunable() && ranks_.ours(i) ? batch.size() : 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].tunable() && ranks_.ours(i)) GEARSHIFT_CHECK(tune_group(groups[i]));
  }
  GEARSHIFT_CHECK(work_of_others(groups));
  GEARSHIFT_CHECK(close_gap(listed, groups));
  if (progress_) progress_(total_, total_, "");

  if (ranks_.size > 1) GEARSHIFT_CHECK(agree(ranks_, session_, registry_));
  GEARSHIFT_TRY(report.plan, session_.plan(registry_));
  session_.add_store_warnings(report.plan);
  report.static_hash = listed.hash;
  report.measured = measured_;
  report.reused = reused_;
  report.quarantined = session_.found_wrong;
  report.not_measured = std::move(not_measured_);
  report.plan.notes.insert(report.plan.notes.end(), prover_.notes().begin(), prover_.notes().end());
  add_times(report, before, listed, groups, session_, prover_);
  return report;
}

}  // namespace gearshift
