#include "pipeline/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "layer/modules.h"
#include "measure/prove.h"
#include "pipeline/measurement.h"
#include "prepare/prepare_shard.h"
#include "prepare/shard_sum.h"

namespace gearshift {

namespace {

// Larger batches repeat the tiles of smaller ones: they are tried on the first layer of a class, and not with float64
// kernels, which compute each row alone.
constexpr int64_t always_up_to = 64;

// The batch sizes of a planned range that a kernel's contract allows, and that are worth it.
std::vector<int64_t> sizes_of(const Kernel& kernel, const PlannedRange& range, const std::vector<int64_t>& batch,
                              bool large_ones_too) {
  const Bounds& allowed = kernel.contract.m;
  const int64_t m_min = std::max(range.m_min, allowed.min);
  const int64_t m_max = range.m_max == 0   ? allowed.max
                        : allowed.max == 0 ? range.m_max
                                           : std::min(range.m_max, allowed.max);
  if (m_max != 0 && m_min > m_max) return {};
  std::vector<int64_t> sizes = probe_sizes(m_min, m_max, batch);
  const auto off = [&](int64_t m) {
    return (allowed.multiple > 1 && m % allowed.multiple != 0) || (m > always_up_to && !large_ones_too);
  };
  sizes.erase(std::remove_if(sizes.begin(), sizes.end(), off), sizes.end());
  return sizes;
}

// The number that an expert has in the checkpoint: its position, but for a slice of the experts of a layer.
std::string expert_number(const LayerSpec& layer, int64_t expert) {
  const size_t parts = layer.modules.size() / static_cast<size_t>(layer.experts);
  const auto name = layer.stacked ? std::nullopt : expert_name(layer.modules[static_cast<size_t>(expert) * parts].name);
  return name ? std::string(name->number) : std::to_string(expert);
}

}  // namespace

Result<VerifyReport> Verifier::run() {
  GEARSHIFT_CHECK(session_.require_device());
  GEARSHIFT_CHECK(session_.require_one_degree());
  GEARSHIFT_CHECK(session_.require_weights());
  GEARSHIFT_CHECK(session_.settle_column_orders());
  VerifyReport report;
  GEARSHIFT_TRY(report.plan, session_.plan(registry_));
  GEARSHIFT_CHECK(session_.require_memory(report.plan));
  batch_ = report.plan.policy.batch;
  std::set<std::string> seen;
  const size_t total = report.plan.layers.size();
  for (size_t i = 0; i < total; ++i) {
    const LayerPlan& layer = report.plan.layers[i];
    if (progress_) progress_(i, total, layer.layer.name);
    GEARSHIFT_CHECK(verify_layer(i, seen.insert(layer.decision->layer_class).second, report));
    prover_.flush();
  }
  if (progress_) progress_(total, total, "");
  report.quarantined = session_.found_wrong;
  if (!report.quarantined.empty()) {
    // Where nothing healthy is left the plan that failed is what there is to show.
    if (auto healthy = session_.plan(registry_); healthy.ok()) report.plan = *std::move(healthy);
  }
  report.plan.notes.insert(report.plan.notes.end(), prover_.notes().begin(), prover_.notes().end());
  notes_.append_to(report.plan);
  session_.add_store_warnings(report.plan);
  return report;
}

Result<void> Verifier::verify_layer(size_t index, bool first_of_class, VerifyReport& report) {
  const LayerPlan& planned = report.plan.layers[index];
  // Before anything of a kernel runs in this process, its packing included.
  Kernels alive;
  bool as_planned = true;
  for (const Verdict& candidate : planned.decision->candidates) {
    if (candidate.kind == VerdictKind::rejected) continue;
    if (launch_kernel(*candidate.kernel, planned, first_of_class, report))
      alive.push_back(candidate.kernel);
    else
      as_planned = as_planned && candidate.kind != VerdictKind::selected;
  }
  if (alive.empty()) return {};
  std::optional<Plan> replanned;
  if (!as_planned) {
    auto plan = session_.plan_row(registry_, index, "");
    if (!plan.ok()) return {};  // the report shows what failed
    replanned = *std::move(plan);
  }
  const LayerPlan& plan = replanned ? replanned->layers[0] : planned;
  if (is_divided(plan.layer)) return verify_shards(plan, alive, first_of_class, report);
  GEARSHIFT_TRY(PreparedLayer prepared, prepare(session_.checkpoint(), plan, session_.threads()));
  notes_.add(prepared);
  return verify_prepared(prepared, alive, first_of_class, "", report);
}

Result<void> Verifier::verify_shards(const LayerPlan& plan, const Kernels& kernels, bool first_of_class,
                                     VerifyReport& report) {
  const int threads = session_.threads();
  PreparedLayer bound;
  bound.plan = &plan;
  GEARSHIFT_TRY(bound.weights, bind_whole(session_.checkpoint(), plan.layer, &bound.notes));
  notes_.add(bound);
  std::vector<ShardSum> sums;
  for (const LayerWeights& whole : bound.weights) sums.emplace_back(whole, session_.settings().seed, threads);
  for (int64_t rank = 0; rank < plan.layer.shard->tp; ++rank) {
    GEARSHIFT_TRY(const std::unique_ptr<PreparedShard> shard, prepare_shard(bound.weights, plan, rank, threads));
    GEARSHIFT_CHECK(
        verify_prepared(shard->layer, kernels, first_of_class && rank == 0, fmt::format("rank {}", rank), report));
    for (size_t expert = 0; expert < sums.size(); ++expert) sums[expert].add(*shard->cuts[expert], rank);
  }
  for (const ShardSum& sum : sums) {
    const std::string difference = sum.difference();
    if (difference.empty()) continue;
    return ErrorInfo{ErrorCode::self_check,
                     fmt::format("layer {}", printable(plan.layer.name)),
                     difference,
                     fmt::format("the shards of {} ranks to be the layer", plan.layer.shard->tp),
                     "they were cut wrongly; please report this",
                     {}};
  }
  return {};
}

Result<void> Verifier::verify_prepared(PreparedLayer& prepared, const Kernels& kernels, bool first_of_class,
                                       const std::string& whose, VerifyReport& report) {
  const int threads = session_.threads();
  for (const Kernel* kernel : kernels) GEARSHIFT_CHECK(add_layout(prepared, *kernel->layout, threads));
  for (size_t expert = 0; expert < prepared.weights.size(); ++expert) {
    Judge judge(prepared.weights[expert], session_.settings().seed, threads);
    for (const Kernel* kernel : kernels) {
      const bool all_sizes = first_of_class && expert == 0 && kernel->accumulator != "fp64";
      verify_kernel(*kernel, prepared, static_cast<int64_t>(expert), all_sizes, whose, judge, report);
    }
  }
  return {};
}

bool Verifier::launch_kernel(const Kernel& kernel, const LayerPlan& plan, bool first_of_class, VerifyReport& report) {
  for (const PlannedRange& range : plan.decision->ranges) {
    const std::vector<int64_t> sizes = sizes_of(kernel, range, batch_, first_of_class && kernel.accumulator != "fp64");
    const auto failure = prover_.launch_apart(kernel, plan, sizes);
    if (!failure) continue;
    Measurement row = measurement_of(plan.layer, kernel, session_.dtype(), failure->m);
    row.comparison.failure = failure->what;
    quarantine(kernel, plan, range, row);
    report.rows.push_back(std::move(row));
    return false;
  }
  return true;
}

void Verifier::verify_kernel(const Kernel& kernel, const PreparedLayer& prepared, int64_t expert, bool all_sizes,
                             const std::string& whose, Judge& judge, VerifyReport& report) {
  for (const PlannedRange& range : prepared.plan->decision->ranges) {
    verify_range(kernel, "", range, prepared, expert, all_sizes, whose, judge, report);
    if (range.kernel == &kernel && !range.tactic.empty())
      verify_range(kernel, range.tactic, range, prepared, expert, all_sizes, whose, judge, report);
  }
}

void Verifier::verify_range(const Kernel& kernel, std::string_view tactic, const PlannedRange& range,
                            const PreparedLayer& prepared, int64_t expert, bool all_sizes, const std::string& whose,
                            Judge& judge, VerifyReport& report) {
  const LayerPlan& plan = *prepared.plan;
  const auto row_at = [&](int64_t m) {
    Measurement row = measurement_of(plan.layer, kernel, session_.dtype(), m);
    row.tactic = tactic;
    std::vector<std::string> which;
    if (!whose.empty()) which.push_back(whose);
    if (prepared.weights.size() > 1) which.push_back("expert " + expert_number(plan.layer, expert));
    if (!which.empty()) row.layer += fmt::format(" ({})", join(which, ", "));
    return row;
  };
  const std::vector<int64_t> sizes = sizes_of(kernel, range, batch_, all_sizes);
  if (const auto failure = prover_.launch_apart(kernel, plan, sizes, tactic)) {
    Measurement row = row_at(failure->m);
    row.comparison.failure = failure->what;
    quarantine(kernel, plan, range, row);
    report.rows.push_back(std::move(row));
    return;
  }
  for (const int64_t m : sizes) {
    Measurement row = row_at(m);
    row.comparison = prove(kernel, prepared, m, session_.dtype(), session_.settings().seed, session_.threads(), expert,
                           judge, tactic)
                         .comparison;
    if (row.comparison.ok) {
      prover_.add(kernel, plan.decision->layer_class, m, row.comparison, tactic);
    } else {
      quarantine(kernel, plan, range, row);
    }
    report.rows.push_back(std::move(row));
  }
}

void Verifier::quarantine(const Kernel& kernel, const LayerPlan& plan, const PlannedRange& range,
                          const Measurement& row) {
  Quarantine quarantine;
  quarantine.kernel = kernel.name;
  quarantine.kernel_version = kernel.version;
  quarantine.layer_class = plan.decision->layer_class;
  quarantine.dtype = name(session_.dtype());
  quarantine.m_min = range.m_min;
  quarantine.m_max = range.m_max;
  quarantine.reason = fmt::format("{} (layer {}, m = {})", row.comparison.failure, row.layer, row.m);
  quarantine.tactic = row.tactic;
  for (const Quarantine& known : session_.found_wrong) {
    if (known.kernel == quarantine.kernel && known.tactic == quarantine.tactic &&
        known.layer_class == quarantine.layer_class && known.m_min == quarantine.m_min)
      return;
  }
  session_.quarantine(quarantine, kernel, fmt::format("seed {}", session_.settings().seed));
}

}  // namespace gearshift
