#include "pipeline/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/try.h"
#include "measure/experts_cell.h"
#include "measure/prove.h"
#include "measure/run_cell.h"
#include "pipeline/measurement.h"

namespace gearshift {

namespace {

std::vector<StackTime> stack_of(const std::vector<Measurement>& rows) {
  std::map<int64_t, std::map<std::string, double>> by_batch;
  for (const Measurement& row : rows) {
    if (row.timing) by_batch[row.m][row.family] += row.timing->median_us;
  }
  std::vector<StackTime> stack;
  for (const auto& [m, families] : by_batch) {
    StackTime time;
    time.m = m;
    for (const auto& [family, us] : families) time.total_us += us;
    for (const auto& [family, us] : families)
      time.share_by_family.emplace_back(family, time.total_us > 0 ? us / time.total_us : 0);
    stack.push_back(std::move(time));
  }
  return stack;
}

// Made-up activations of two calls differ from those of one.
constexpr uint64_t kSeedOfRouting = 0x9E3779B97F4A7C15;

Timing sum(const Timing& a, const Timing& b) {
  return {a.median_us + b.median_us, a.p10_us + b.p10_us, a.p90_us + b.p90_us, std::min(a.samples, b.samples)};
}

}  // namespace

Result<RunJobs> Runner::jobs() {
  const Settings& settings = session_.settings();
  if (!settings.input.empty()) {
    GEARSHIFT_TRY(RunJobs jobs, jobs_from_file(settings.input, session_.rows(), session_.dtype()));
    std::set<int64_t> batch;
    for (const RunJob& job : jobs.jobs) {
      if (job.x->rows > 0) batch.insert(job.x->rows);
    }
    // The batch sizes that count are those of the file, unless others were asked for as well.
    if (!settings.batch_given && !batch.empty()) session_.set_batch({batch.begin(), batch.end()});
    return jobs;
  }
  if (!settings.output.empty() && settings.policy.batch.size() != 1) {
    ErrorInfo error;
    error.code = ErrorCode::usage;
    error.subject = "--output";
    error.found = fmt::format("{} batch sizes", settings.policy.batch.size());
    error.wanted = "one --batch, or an --input";
    return error;
  }
  const ExpertRouting& routing = session_.routing();
  const bool with_blocks = routing.known() && routing.function.kind != ExpertFunction::Kind::unknown &&
                           session_.device().platform == Platform::cpu;
  RunJobs jobs = jobs_with_made_up_input(session_.rows(), with_blocks);
  for (const RunJob& job : jobs.jobs) {
    if (job.output.empty() && !settings.output.empty()) {
      jobs.not_run.push_back(session_.rows()[job.row].name +
                             ": run, but not in --output: each expert has a result of its own");
    }
  }
  return jobs;
}

Result<RunReport> Runner::run() {
  GEARSHIFT_CHECK(session_.require_device());
  GEARSHIFT_CHECK(session_.require_whole_layers());
  GEARSHIFT_CHECK(session_.require_weights());
  GEARSHIFT_CHECK(session_.settle_column_orders());
  GEARSHIFT_TRY(const RunJobs work, jobs());
  GEARSHIFT_TRY(Plan first, session_.plan(registry_));
  plan_ = std::make_unique<const Plan>(std::move(first));
  GEARSHIFT_CHECK(session_.require_memory(*plan_));

  std::vector<Done> done(work.jobs.size());
  std::set<size_t> pending;
  for (size_t i = 0; i < work.jobs.size(); ++i) pending.insert(i);
  while (!pending.empty()) {
    const size_t current = *pending.begin();
    const LayerSpec& layer = session_.rows()[work.jobs[current].row];
    if (progress_) progress_(work.jobs.size() - pending.size(), work.jobs.size(), layer.name);
    done[current] = {};
    GEARSHIFT_TRY(const std::optional<Quarantine> wrong, work.jobs[current].block
                                                             ? run_block(work.jobs[current], done[current])
                                                             : run_job(work.jobs[current], done[current]));
    if (!wrong) {
      pending.erase(current);
      continue;
    }
    GEARSHIFT_CHECK(impose(*wrong));
    // Rows of this class that are done ran the kernel that is now out.
    for (size_t i = 0; i < work.jobs.size(); ++i) {
      const RunJob& job = work.jobs[i];
      const size_t second = job.block ? job.block->second : job.row;
      for (const size_t row : {job.row, second}) {
        if (layer_class(session_.rows()[row]) == wrong->layer_class) pending.insert(i);
      }
    }
  }
  if (progress_) progress_(work.jobs.size(), work.jobs.size(), "");
  if (!session_.settings().output.empty()) GEARSHIFT_CHECK(write_output(work.jobs, done));

  RunReport report;
  for (Done& job : done) report.rows.insert(report.rows.end(), job.rows.begin(), job.rows.end());
  // A block stands for its rows.
  std::set<size_t> replaced;
  for (const Done& job : done) replaced.insert(job.replaces.begin(), job.replaces.end());
  std::vector<Measurement> counted;
  for (size_t i = 0; i < done.size(); ++i) {
    if (work.jobs[i].block || replaced.count(work.jobs[i].row) == 0)
      counted.insert(counted.end(), done[i].rows.begin(), done[i].rows.end());
  }
  report.stack = stack_of(counted);
  report.plan = *plan_;
  notes_.append_to(report.plan);
  session_.add_store_warnings(report.plan);
  report.quarantined = session_.found_wrong;
  report.plan.notes.insert(report.plan.notes.end(), prover_.notes().begin(), prover_.notes().end());
  report.not_run = work.not_run;
  report.proofs = prover_.counts();
  report.output = session_.settings().output;
  return report;
}

Result<std::optional<Quarantine>> Runner::run_job(const RunJob& job, Done& done) {
  const LayerPlan& plan = plan_->layers[job.row];
  if (auto wrong = launch_class(plan)) return wrong;
  GEARSHIFT_TRY(const PreparedLayer prepared, prepare(session_.checkpoint(), plan, session_.threads()));
  notes_.add(prepared);
  for (int64_t expert = job.expert_begin; expert < job.expert_end; ++expert) {
    Judge judge(prepared.weights[static_cast<size_t>(expert)], session_.settings().seed, session_.threads());
    if (expert == job.expert_begin) {
      if (auto wrong = prove_class(prepared, expert, judge)) return wrong;
    }
    GEARSHIFT_TRY(const std::optional<Quarantine> wrong, measure(job, prepared, expert, judge, done));
    if (wrong) return wrong;
  }
  return std::optional<Quarantine>();
}

// Before anything of a kernel runs in this process, its packing included.
std::optional<Quarantine> Runner::launch_class(const LayerPlan& plan) {
  for (const PlannedRange& range : plan.decision->ranges) {
    const std::vector<int64_t> sizes = probe_sizes(range.m_min, range.m_max, plan_->policy.batch);
    if (const auto failure = prover_.launch_apart(*range.kernel, plan, sizes, range.tactic))
      return quarantine_of(plan, {range.m_min, failure->what}, session_.dtype());
  }
  return std::nullopt;
}

Result<std::optional<Quarantine>> Runner::run_block(const RunJob& job, Done& done) {
  const LayerPlan* const plans[] = {&plan_->layers[job.row], &plan_->layers[job.block->second]};
  const int threads = session_.threads();
  const uint64_t seed = session_.settings().seed;
  for (const LayerPlan* plan : plans) {
    if (auto wrong = launch_class(*plan)) return wrong;
  }
  GEARSHIFT_TRY(const PreparedLayer first, prepare(session_.checkpoint(), *plans[0], threads));
  GEARSHIFT_TRY(const PreparedLayer second, prepare(session_.checkpoint(), *plans[1], threads));
  for (const PreparedLayer* prepared : {&first, &second}) {
    notes_.add(*prepared);
    Judge judge(prepared->weights.front(), seed, threads);
    if (auto wrong = prove_class(*prepared, 0, judge)) return wrong;
  }
  GEARSHIFT_TRY(const ExpertBlock block, ExpertBlock::make(first, second, session_.routing().function));
  const int64_t top_k = job.routing ? job.routing->top_k : std::min(session_.routing().top_k, block.experts());
  std::string identity = std::to_string(top_k);
  for (const LayerPlan* plan : plans) {
    identity += "\n" + plan->decision->layer_class;
    for (const PlannedRange& range : plan->decision->ranges)
      identity += fmt::format(" {} {} {}", range.m_min, range.kernel->name, range.tactic);
  }
  if (proven_blocks_.count(identity) == 0) {
    GEARSHIFT_TRY(const ExpertsVerdict verdict,
                  prove_experts(block, std::min(top_k, block.experts()), session_.dtype(), seed, threads));
    GEARSHIFT_TRY(const auto wrong, consequence(job, verdict));
    if (wrong) return wrong;
    proven_blocks_.insert(identity);
  }
  std::vector<int64_t> batch = plan_->policy.batch;
  if (job.x) batch = {job.x->rows};
  for (const int64_t m : batch) {
    OwnedMatrix made_up;
    if (!job.x) {
      GEARSHIFT_TRY(made_up, allocate_matrix(session_.dtype(), m, block.k(), fmt::format("input of {}", job.output)));
      make_activations(made_up.view(), seed, threads, activation_limit(first.weights.front()));
    }
    const ConstMatrix x = job.x ? job.x->view() : std::as_const(made_up).view();
    MadeUpRouting choice;
    RoutedTokens routed;
    if (job.routing) {
      routed = {m, job.routing->top_k, job.routing->experts.data(), job.routing->weights.data()};
    } else {
      choice = make_routing(m, top_k, block.experts(), 0, seed ^ kSeedOfRouting);
      routed = choice.view();
    }
    GEARSHIFT_TRY(const ExpertsCell cell, run_experts_cell(block, routed, x, seed, threads));
    GEARSHIFT_TRY(const auto wrong, consequence(job, cell.verdict));
    if (wrong) return wrong;
    Measurement row = block_measurement(block, job.output, routed, session_.dtype());
    row.comparison = cell.verdict.comparison;
    if (cell.timing) set_block_timing(row, block, routed, *cell.timing, session_.dtype());
    done.rows.push_back(std::move(row));
    if (session_.settings().output.empty()) continue;
    done.m = m;
    done.output.assign(cell.y.bytes.data(), cell.y.bytes.data() + m * block.n() * element_bytes(session_.dtype()));
  }
  if (!job.x) done.replaces = {job.row, job.block->second};
  return std::optional<Quarantine>();
}

Result<std::optional<Quarantine>> Runner::consequence(const RunJob& job, const ExpertsVerdict& verdict) const {
  if (verdict.comparison.ok) return std::optional<Quarantine>();
  if (verdict.projection >= 0) {
    const LayerPlan& plan = plan_->layers[verdict.projection == 0 ? job.row : job.block->second];
    return std::optional(quarantine_of(plan, {verdict.rows, verdict.comparison.failure}, session_.dtype()));
  }
  return ErrorInfo{ErrorCode::self_check,      fmt::format("expert block {}", job.output),
                   verdict.comparison.failure, "the function and sums of its float64 reference",
                   "please report this",       {}};
}

std::optional<Quarantine> Runner::prove_class(const PreparedLayer& prepared, int64_t expert, Judge& judge) {
  const LayerPlan& plan = *prepared.plan;
  // An expert gets what it can expect of a batch, or any number up to all of it.
  std::vector<int64_t> batch = plan_->policy.batch;
  for (const int64_t m : plan_->policy.batch) {
    if (plan.layer.kind == LayerKind::experts) batch.push_back(expected_rows(session_.routing(), m));
  }
  for (const PlannedRange& range : plan.decision->ranges) {
    const std::vector<int64_t> sizes = probe_sizes(range.m_min, range.m_max, batch);
    if (const auto failure = prover_.prove_at(*range.kernel, prepared, expert, sizes, judge, range.tactic))
      return quarantine_of(plan, *failure, session_.dtype());
  }
  return std::nullopt;
}

Result<std::optional<Quarantine>> Runner::measure(const RunJob& job, const PreparedLayer& prepared, int64_t expert,
                                                  Judge& judge, Done& done) {
  const LayerPlan& plan = *prepared.plan;
  const LayerSpec& layer = plan.layer;
  const int threads = session_.threads();
  const int64_t experts = job.expert_end - job.expert_begin;
  // Given activations have nothing in common with the made-up ones that `judge` has answers for.
  Judge judge_of_input(prepared.weights[static_cast<size_t>(expert)], session_.settings().seed, threads);
  std::vector<int64_t> batch = plan_->policy.batch;
  if (job.x) batch = {job.x->rows};
  for (size_t i = 0; i < batch.size(); ++i) {
    const int64_t m = batch[i];
    OwnedMatrix made_up;
    if (!job.x) {
      GEARSHIFT_TRY(made_up,
                    allocate_matrix(session_.dtype(), m, layer.k, fmt::format("input of layer {}", layer.name)));
      make_activations(made_up.view(), session_.settings().seed, threads,
                       activation_limit(prepared.weights[static_cast<size_t>(expert)]));
    }
    const ConstMatrix x = job.x ? job.x->view() : std::as_const(made_up).view();
    GEARSHIFT_TRY(const Cell cell, run_cell(prepared, x, job.x ? judge_of_input : judge, threads, expert));
    if (!cell.comparison.ok) return std::optional(quarantine_of(plan, {m, cell.comparison.failure}, session_.dtype()));

    if (expert == job.expert_begin) {
      const PlannedRange& range = range_for(*plan.decision, std::max<int64_t>(1, m));
      done.rows.push_back(measurement_of(layer, *range.kernel, session_.dtype(), m));
      done.rows.back().tactic = range.tactic;
      done.rows.back().comparison.ok = true;
    }
    Measurement& row = done.rows[i];
    merge(row.comparison, cell.comparison);
    if (cell.timing)
      set_timing(row, row.timing ? sum(*row.timing, *cell.timing) : *cell.timing, session_.dtype(), experts);
    if (session_.settings().output.empty() || job.output.empty()) continue;
    const int64_t size = element_bytes(session_.dtype());
    done.m = m;
    done.output.resize(static_cast<size_t>(m * job.columns * size));
    for (int64_t r = 0; r < m; ++r) {
      std::memcpy(done.output.data() + r * job.columns * size, cell.y.bytes.data() + (r * layer.n + job.column) * size,
                  static_cast<size_t>(job.columns * size));
    }
  }
  return std::optional<Quarantine>();
}

Result<void> Runner::impose(const Quarantine& quarantine) {
  const PlannedRange* range = nullptr;
  for (const LayerPlan& row : plan_->layers) {
    if (row.decision->layer_class == quarantine.layer_class) range = &range_for(*row.decision, quarantine.m_min);
  }
  GEARSHIFT_CHECK(gearshift::impose(session_, quarantine, *range->kernel));
  GEARSHIFT_TRY(Plan plan, session_.plan(registry_));
  plan_ = std::make_unique<const Plan>(std::move(plan));
  return {};
}

Result<void> Runner::write_output(const std::vector<RunJob>& jobs, const std::vector<Done>& done) const {
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].output.empty()) continue;
    tensors.push_back({jobs[i].output, session_.dtype(), {done[i].m, jobs[i].columns}, done[i].output});
  }
  return write_safetensors(session_.settings().output, tensors);
}

}  // namespace gearshift
