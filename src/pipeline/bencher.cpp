#include "pipeline/bencher.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/try.h"
#include "kernel/cpu/isa.h"
#include "measure/ceilings/floor.h"
#include "measure/device_cell.h"
#include "measure/pinned_threads.h"
#include "pipeline/measurement.h"
#include "plan/arithmetic.h"
#include "plan/registry_rules.h"
#include "plan/select.h"

namespace gearshift {

namespace {

// Cells of a layer and the ceilings take turns, so that a slow moment of the machine falls on all of them.
constexpr int kRounds = 5;
constexpr int kSamplesARound = 20;
constexpr std::chrono::milliseconds kTimeARound{80};
// What is read in turn: far beyond the caches of any processor.
constexpr uint64_t kEnoughBytes = uint64_t{1} << 30;

const PlannedRange* range_that_serves(const Decision& decision, int64_t m) {
  for (const PlannedRange& range : decision.ranges) {
    if (m >= range.m_min && (range.m_max == 0 || m <= range.m_max)) return &range;
  }
  return nullptr;
}

// Why `wanted` (a kernel, or "" for any) serves no batch of m.
std::string reason_against(const Decision& decision, std::string_view wanted, Family family, int64_t m) {
  for (const Verdict& verdict : decision.candidates) {
    if (verdict.kernel->name != wanted) continue;
    if (verdict.kind == VerdictKind::rejected) return verdict.reason;
    return fmt::format("{} does not serve batch {}: {}", wanted, m, verdict.reason);
  }
  if (!wanted.empty()) return fmt::format("{} is not registered for {}", wanted, name(family));
  return fmt::format("no kernel serves batch {}", m);
}

std::vector<StackTime> stack_of_model(const BenchReport& report, const std::vector<int64_t>& batch) {
  std::vector<StackTime> stack;
  for (const int64_t m : batch) {
    StackTime time;
    time.m = m;
    std::map<std::string, double> families;
    bool whole = true;
    for (const BenchRow& row : report.rows) {
      if (row.measurement.m != m) continue;
      whole = whole && row.measurement.timing.has_value();
      if (!whole) break;
      const double us = row.measurement.timing->median_us * static_cast<double>(row.layers);
      families[row.measurement.family] += us;
      time.total_us += us;
    }
    if (!whole || time.total_us <= 0) continue;
    for (const auto& [family, us] : families) time.share_by_family.emplace_back(family, us / time.total_us);
    stack.push_back(std::move(time));
  }
  return stack;
}

// What a reader must know before comparing these numbers.
std::vector<std::string> notes_of(const BenchReport& report) {
  constexpr double kSteady = 1.25;
  constexpr uint64_t kBeyondCaches = uint64_t{512} << 20;
  std::vector<std::string> notes;
  for (const Ceiling& ceiling : report.ceilings) {
    if (ceiling.name != "fp32" || ceiling.p90 <= kSteady * ceiling.p10) continue;
    notes.push_back(
        fmt::format("the fp32 peak went from {:.3g} to {:.3g} {} while this ran: the machine does other work, "
                    "or changes its clock; repeat the run before comparing",
                    ceiling.p10, ceiling.p90, ceiling.unit));
  }
  uint64_t least = kBeyondCaches;
  for (const BenchRow& row : report.rows) {
    if (row.measurement.timing) least = std::min(least, row.rotated_bytes);
  }
  if (least < kBeyondCaches)
    notes.push_back(
        fmt::format("weights were read in turn from {} in all: caches may hold a part, and GB/s look higher than "
                    "memory's",
                    format_bytes(least)));
  if (!report.pinned)
    notes.push_back(
        fmt::format("{} threads are more than the cores this process may use: they share cores", report.threads));
  return notes;
}

}  // namespace

Result<void> Bencher::choose(Plan& plan) {
  const Policy& policy = job_.settings.policy;
  const Store empty;
  const Assumptions nothing;  // of another engine: its kernels do not run here
  const SelectionContext context{job_.device, policy, empty, registry_, nothing};
  const std::vector<RequestRule> rules = request_rules(policy);
  PlanRequest request;
  for (const BenchTarget& what : job_.targets) {
    const Selection selection =
        select(what.layer, rules[request_for(rules, what.layer)], route_of(what.layer, context), context);
    const Decision& decision = selection.decision;
    Target target{&what, {}};
    for (const int64_t m : policy.batch) {
      Choice choice;
      const PlannedRange* range = range_that_serves(decision, m);
      if (range == nullptr) {
        choice.asked = policy.force_kernel;
        choice.refused = reason_against(decision, policy.force_kernel, what.layer.family, m);
      } else if (decision.fallback && range->kernel->backend != decision.fallback->requested) {
        choice.asked = decision.fallback->requested;
        choice.refused = decision.fallback->reason;
      } else if (range->kernel->platform != job_.device.platform) {
        choice.asked = range->kernel->name;
        choice.refused = fmt::format("{} runs on the host, nothing runs on {}", range->kernel->name, job_.device.name);
      } else {
        choice.kernel = range->kernel;
        total_ += 1 + kRounds;
      }
      target.choices.push_back(std::move(choice));
    }
    targets_.push_back(std::move(target));
    if (selection.unserved.empty()) request.layers.push_back(what.layer);
  }
  // A forced kernel leaves layers out that it does not serve at every batch size: their cells say so, the plan is of
  // the others.
  request.model = job_.model_path.empty() ? nullptr : &job_.model;
  request.model_path = job_.model_path;
  request.device = job_.device;
  request.policy = policy;
  request.registry = &registry_;
  GEARSHIFT_TRY(plan, make_plan(std::move(request)));
  return {};
}

void Bencher::step(const BenchTarget& target, int64_t m) {
  if (progress_) progress_(done_, total_, fmt::format("{}, batch {}", target.layer.name, m));
  ++done_;
}

BenchRow Bencher::row_of(const Target& target, size_t batch) const {
  const LayerSpec layer = one_expert(target.what->layer);
  const Choice& choice = target.choices[batch];
  const int64_t m = job_.settings.policy.batch[batch];
  BenchRow row;
  row.layers = target.what->layers * std::max<int64_t>(1, target.what->layer.experts);
  row.refused = choice.refused;
  Measurement& measurement = row.measurement;
  if (choice.kernel != nullptr) {
    measurement = measurement_of(layer, *choice.kernel, job_.settings.policy.dtype, m);
  } else {
    measurement.family = name(layer.family);
    measurement.scheme = scheme_name(layer.scheme);
    measurement.n = layer.n;
    measurement.k = layer.k;
    measurement.m = m;
    measurement.weight_bytes = layer.weight_bytes;
    const bool forced = choice.asked == job_.settings.policy.force_kernel;
    (forced ? measurement.kernel : measurement.backend) = choice.asked;
  }
  measurement.layer = job_.model_path.empty() ? "" : target.what->layer.name;
  return row;
}

Result<void> Bencher::time_on_host(const Target& target, CeilingMeter& meter, uint64_t rotate_bytes,
                                   BenchReport& report) {
  const Policy& policy = job_.settings.policy;
  std::vector<const Layout*> layouts;
  for (const Choice& choice : target.choices) {
    if (choice.kernel != nullptr) layouts.push_back(choice.kernel->layout);
  }
  std::sort(layouts.begin(), layouts.end());
  layouts.erase(std::unique(layouts.begin(), layouts.end()), layouts.end());
  GEARSHIFT_TRY(const std::unique_ptr<RotatingLayer> layer,
                RotatingLayer::make(target.what->layer, layouts, job_.settings.seed, job_.threads(),
                                    rotate_bytes / std::max<size_t>(1, layouts.size())));
  Judge judge(layer->weights(), job_.settings.seed, job_.threads());
  std::vector<std::optional<BenchCell>> cells(target.choices.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    if (target.choices[i].kernel == nullptr) continue;
    step(*target.what, policy.batch[i]);
    GEARSHIFT_TRY(cells[i], BenchCell::make(*target.choices[i].kernel, *layer, policy.batch[i], policy.dtype,
                                            job_.settings.seed, job_.threads()));
    cells[i]->check(judge);
  }
  for (int round = 0; round < kRounds; ++round) {
    meter.sample();
    for (auto& cell : cells) {
      if (!cell) continue;
      step(*target.what, cell->m());
      if (cell->comparison().ok) cell->take(kSamplesARound, kTimeARound);
    }
  }
  meter.sample();

  for (size_t i = 0; i < cells.size(); ++i) {
    BenchRow row = row_of(target, i);
    if (cells[i]) {
      const Kernel& kernel = cells[i]->kernel();
      row.measurement.comparison = cells[i]->comparison();
      if (const auto timing = cells[i]->timing()) set_timing(row.measurement, *timing, policy.dtype, 1);
      row.copies = layer->copies(*kernel.layout);
      row.rotated_bytes = layer->bytes(*kernel.layout);
    }
    report.rows.push_back(std::move(row));
  }
  return {};
}

Result<void> Bencher::time_on_device(const Target& target, DeviceCeilings& ceilings, BenchReport& report) {
  const Policy& policy = job_.settings.policy;
  const std::unique_ptr<MadeUpLayer> layer = make_up_layer(target.what->layer, job_.settings.seed);
  Judge judge(layer->prepared.weights.front(), job_.settings.seed, job_.threads());
  std::vector<std::optional<DeviceCell>> cells(target.choices.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const Kernel* kernel = target.choices[i].kernel;
    if (kernel == nullptr) continue;
    step(*target.what, policy.batch[i]);
    GEARSHIFT_CHECK(use_kernel(*layer, *kernel, job_.threads()));
    GEARSHIFT_TRY(cells[i],
                  DeviceCell::make(*kernel, *layer, policy.batch[i], policy.dtype, job_.settings.seed, job_.threads()));
    GEARSHIFT_CHECK(cells[i]->check(judge));
  }
  for (int round = 0; round < kRounds; ++round) {
    GEARSHIFT_CHECK(ceilings.sample());
    for (auto& cell : cells) {
      if (!cell) continue;
      step(*target.what, cell->m());
      if (cell->comparison().ok) GEARSHIFT_CHECK(cell->take(kSamplesARound));
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    BenchRow row = row_of(target, i);
    if (cells[i]) {
      row.measurement.comparison = cells[i]->comparison();
      if (const auto timing = cells[i]->timing()) set_timing(row.measurement, *timing, policy.dtype, 1);
      row.copies = cells[i]->copies();
      row.rotated_bytes =
          static_cast<uint64_t>(row.copies * cells[i]->kernel().layout->bytes(layer->prepared.plan->layer));
    }
    report.rows.push_back(std::move(row));
  }
  return {};
}

Result<void> Bencher::on_host(BenchReport& report) {
  constexpr uint64_t kUnknownMemory = uint64_t{4} << 30;
  auto limit = static_cast<uint64_t>(job_.settings.memory_limit);
  if (limit == 0) limit = (job_.device.memory_bytes > 0 ? job_.device.memory_bytes : kUnknownMemory) / 2;
  const uint64_t part = std::min(kEnoughBytes, limit / 3);  // to read, to rotate, and the layer itself

  set_max_isa(job_.device.isa);
  const PinnedThreads pin(job_.threads());
  report.pinned = pin.pinned();
  GEARSHIFT_TRY(CeilingMeter meter, CeilingMeter::make(active_isa(), job_.threads(), part));
  for (const Target& target : targets_) GEARSHIFT_CHECK(time_on_host(target, meter, part, report));
  report.ceilings = meter.ceilings();
  report.notes = notes_of(report);
  return {};
}

Result<void> Bencher::on_device(BenchReport& report) {
  GEARSHIFT_TRY(DeviceCeilings ceilings, DeviceCeilings::make());
  GEARSHIFT_CHECK(ceilings.sample());
  for (const Target& target : targets_) GEARSHIFT_CHECK(time_on_device(target, ceilings, report));
  report.ceilings = ceilings.ceilings();
  report.notes.push_back(
      "medians over replays of CUDA graphs of back-to-back calls, on copies of the weights in turn; rows of 0.5 ms and "
      "more come from a burst, not from a device at its sustained clock");
  return {};
}

Result<BenchReport> Bencher::run() {
  BenchReport report;
  report.threads = job_.threads();
  GEARSHIFT_CHECK(choose(report.plan));
  GEARSHIFT_CHECK(job_.device.platform == Platform::cpu ? on_host(report) : on_device(report));
  if (progress_) progress_(total_, total_, "");

  size_t at = 0;
  for (const Target& target : targets_) {
    for (const Choice& choice : target.choices) {
      BenchRow& row = report.rows[at++];
      if (choice.kernel == nullptr) continue;
      const LayerSpec layer = one_expert(target.what->layer);
      const Floor floor =
          floor_of(report.ceilings, layer, activation_word(*choice.kernel, layer, job_.settings.policy.dtype),
                   row.measurement.m);
      row.floor_us = floor.us;
      row.floor_by = floor.ceiling;
    }
  }
  if (!job_.model_path.empty()) report.stack = stack_of_model(report, job_.settings.policy.batch);
  return report;
}

}  // namespace gearshift
