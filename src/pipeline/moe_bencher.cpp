#include "pipeline/moe_bencher.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/try.h"
#include "kernel/cpu/isa.h"
#include "measure/ceilings/floor.h"
#include "measure/pinned_threads.h"
#include "measure/poison.h"
#include "measure/timer.h"
#include "pipeline/measurement.h"
#include "plan/arithmetic.h"

namespace gearshift {

namespace {

constexpr int kMoeRounds = 5;
constexpr int kCallsARound = 20;
constexpr double kMicrosecondsARound = 80'000;
constexpr uint64_t kMoeBytes = uint64_t{1} << 30;
// Choices of a router that calls take in turn, so that small batches do not meet the same experts again.
constexpr size_t kChoices = 16;
// Zipf's law: the expert of rank r gets tokens in proportion to 1 / r.
constexpr double kZipf = 1;

std::vector<int64_t> loads_of(const MadeUpRouting& choice, int64_t experts) {
  std::vector<int64_t> rows(static_cast<size_t>(experts));
  for (const int32_t expert : choice.experts) ++rows[static_cast<size_t>(expert)];
  rows.erase(std::remove(rows.begin(), rows.end(), 0), rows.end());
  return rows;
}

double time_of(const std::function<Result<void>()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  (void)call().ok();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Result<void> MoeBencher::plan(Plan& plan) const {
  PlanRequest request;
  const Policy& policy = job_.settings.policy;
  for (const MoeShape& shape : job_.settings.moe_shapes) {
    for (const Scheme& scheme : job_.schemes) {
      request.layers.push_back(made_up_experts(scheme, shape.experts, {shape.n, shape.n}, shape.k, policy.dtype));
      request.layers.back().name = fmt::format("{}.experts.gate_up_proj", request.layers.size() / 2);
      request.layers.push_back(made_up_experts(scheme, shape.experts, {shape.k}, shape.n, policy.dtype));
      request.layers.back().name = fmt::format("{}.experts.down_proj", request.layers.size() / 2 - 1);
    }
  }
  request.device = job_.device;
  request.policy = policy;
  request.registry = &registry_;
  GEARSHIFT_TRY(plan, make_plan(std::move(request)));
  return {};
}

Result<MoeBencher::Cell> MoeBencher::make_cell(const MoeShape& shape, const RotatingExperts& experts, int64_t m,
                                               double skew) const {
  const int threads = job_.threads();
  const uint64_t seed = job_.settings.seed;
  const DType dtype = job_.settings.policy.dtype;
  Cell cell;
  cell.m = m;
  cell.skew = skew;
  for (size_t i = 0; i < kChoices; ++i)
    cell.choices.push_back(make_routing(m, shape.top_k, shape.experts, skew, seed + 1 + i));
  GEARSHIFT_TRY(cell.x, allocate_matrix(dtype, m, shape.k, "input of a benchmark"));
  GEARSHIFT_TRY(cell.y, allocate_matrix(dtype, m, shape.k, "output of a benchmark"));
  GEARSHIFT_TRY(ExpertScratch scratch, ExpertScratch::make(experts.any(), m, shape.top_k, dtype, threads));
  cell.scratch = std::make_unique<ExpertScratch>(std::move(scratch));
  const float limit = activation_limit(experts.any().first().weights.front());
  make_activations(cell.x.view(), seed, threads, limit);
  cell.scratch->poison(byte_of(Poison::nan));
  std::memset(cell.y.bytes.data(), byte_of(Poison::nan), cell.y.bytes.size());
  const RoutedTokens routed = cell.choices.front().view();
  const ConstMatrix x = std::as_const(cell.x).view(), y = std::as_const(cell.y).view();
  GEARSHIFT_CHECK(run_experts(experts.any(), routed, x, cell.y.view(), *cell.scratch, threads));
  cell.comparison = judge_experts(experts.any(), routed, x, y, *cell.scratch, seed, threads).comparison;
  if (const std::string left = find_poison(y); cell.comparison.ok && !left.empty()) {
    cell.comparison.ok = false;
    cell.comparison.failure = left;
  }
  make_plain_activations(cell.x.view(), seed, threads, limit);
  return cell;
}

void MoeBencher::take(Cell& cell, RotatingExperts& experts) const {
  if (!cell.comparison.ok) return;
  const ConstMatrix x = std::as_const(cell.x).view();
  double spent = 0;
  for (int i = 0; i <= kCallsARound && (i <= 1 || spent < kMicrosecondsARound); ++i) {
    const RoutedTokens routed = cell.choices[cell.turn++ % cell.choices.size()].view();
    const double grouped =
        time_of([&] { return run_experts(experts.next(), routed, x, cell.y.view(), *cell.scratch, job_.threads()); });
    const double one_by_one = time_of([&] {
      return run_experts_one_by_one(experts.next(), routed, x, cell.y.view(), *cell.scratch, job_.threads());
    });
    spent += grouped + one_by_one;
    if (i == 0) continue;  // warms up
    cell.grouped_us.push_back(grouped);
    cell.one_by_one_us.push_back(one_by_one);
  }
}

void MoeBencher::add_rows(const MoeShape& shape, const Cell& cell, const RotatingExperts& experts,
                          BenchReport& report) {
  const DType dtype = job_.settings.policy.dtype;
  Load load{experts.any().first().plan, experts.any().second().plan, {}};
  double active = 0;
  for (const MadeUpRouting& choice : cell.choices) {
    load.rows.push_back(loads_of(choice, shape.experts));
    active += static_cast<double>(load.rows.back().size()) / static_cast<double>(cell.choices.size());
  }
  for (const bool grouped : {true, false}) {
    BenchRow row;
    const RoutedTokens routed = cell.choices.front().view();
    row.measurement = block_measurement(experts.any(), "", routed, dtype);
    row.measurement.n = shape.n;
    row.measurement.weight_bytes = static_cast<uint64_t>(
        active * static_cast<double>((load.first->layer.weight_bytes + load.second->layer.weight_bytes) /
                                     static_cast<uint64_t>(shape.experts)));
    row.measurement.tactic =
        fmt::format("{}, {} experts, top {}, {}, {:.3g} active, {:.3g} tokens each", grouped ? "grouped" : "one by one",
                    shape.experts, shape.top_k, cell.skew == 0 ? "uniform" : "zipf", active,
                    static_cast<double>(cell.m * shape.top_k) / active);
    row.measurement.comparison = cell.comparison;
    const std::vector<double>& samples = grouped ? cell.grouped_us : cell.one_by_one_us;
    if (!samples.empty()) set_block_timing(row.measurement, experts.any(), routed, summarize(samples), dtype);
    row.copies = experts.copies();
    row.rotated_bytes = experts.bytes();
    report.rows.push_back(std::move(row));
    loads_.push_back(load);
  }
}

Result<void> MoeBencher::time_block(const MoeShape& shape, const LayerPlan& first, const LayerPlan& second,
                                    CeilingMeter& meter, uint64_t bytes, BenchReport& report) {
  const ExpertFunction silu{ExpertFunction::Kind::silu, 1, 0, 0};
  GEARSHIFT_TRY(const std::unique_ptr<RotatingExperts> experts,
                RotatingExperts::make(first, second, silu, job_.settings.seed, job_.threads(), bytes));
  std::vector<Cell> cells;
  const auto step = [&](int64_t m) {
    if (progress_)
      progress_(done_, total_, fmt::format("{} experts of {} x {}, batch {}", shape.experts, shape.n, shape.k, m));
    ++done_;
  };
  for (const int64_t m : job_.settings.policy.batch) {
    for (const double skew : {0.0, kZipf}) {
      step(m);
      GEARSHIFT_TRY(Cell cell, make_cell(shape, *experts, m, skew));
      cells.push_back(std::move(cell));
    }
  }
  for (int round = 0; round < kMoeRounds; ++round) {
    meter.sample();
    for (Cell& cell : cells) {
      step(cell.m);
      take(cell, *experts);
    }
  }
  meter.sample();
  for (const Cell& cell : cells) add_rows(shape, cell, *experts, report);
  return {};
}

// The mean over the router's choices of what each expert's rows would take at the ceilings.
void MoeBencher::add_floors(BenchReport& report) const {
  const DType dtype = job_.settings.policy.dtype;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    double us = 0;
    std::map<std::string_view, double> by;
    for (const LayerPlan* plan : {loads_[i].first, loads_[i].second}) {
      const LayerSpec layer = one_expert(plan->layer);
      for (const std::vector<int64_t>& choice : loads_[i].rows) {
        for (const int64_t rows : choice) {
          const Kernel& kernel = *range_for(*plan->decision, rows).kernel;
          const Floor floor = floor_of(report.ceilings, layer, activation_word(kernel, layer, dtype), rows);
          us += floor.us / static_cast<double>(loads_[i].rows.size());
          by[floor.ceiling] += floor.us;
        }
      }
    }
    report.rows[i].floor_us = us;
    const auto largest =
        std::max_element(by.begin(), by.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (largest != by.end()) report.rows[i].floor_by = std::string(largest->first);
  }
}

Result<BenchReport> MoeBencher::run() {
  BenchReport report;
  report.threads = job_.threads();
  GEARSHIFT_CHECK(plan(report.plan));
  constexpr uint64_t kUnknownMemory = uint64_t{4} << 30;
  auto limit = static_cast<uint64_t>(job_.settings.memory_limit);
  if (limit == 0) limit = (job_.device.memory_bytes > 0 ? job_.device.memory_bytes : kUnknownMemory) / 2;
  const uint64_t part = std::min(kMoeBytes, limit / 3);
  total_ =
      job_.settings.moe_shapes.size() * job_.schemes.size() * job_.settings.policy.batch.size() * 2 * (1 + kMoeRounds);

  set_max_isa(job_.device.isa);
  const PinnedThreads pin(job_.threads());
  report.pinned = pin.pinned();
  GEARSHIFT_TRY(CeilingMeter meter, CeilingMeter::make(active_isa(), job_.threads(), part));
  size_t at = 0;
  for (const MoeShape& shape : job_.settings.moe_shapes) {
    for (size_t scheme = 0; scheme < job_.schemes.size(); ++scheme, at += 2)
      GEARSHIFT_CHECK(time_block(shape, report.plan.layers[at], report.plan.layers[at + 1], meter, part, report));
  }
  if (progress_) progress_(total_, total_, "");
  report.ceilings = meter.ceilings();
  add_floors(report);
  report.notes.push_back(
      "experts: floors are of the experts that got tokens; calls with one kernel per expert (one by one) and grouped "
      "ones take turns on other copies of the weights");
  return report;
}

}  // namespace gearshift
