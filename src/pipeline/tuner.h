// Measures the kernels that a plan can use, and keeps what it learns.
#pragma once

#include "measure/time_kernels.h"
#include "pipeline/prover.h"
#include "pipeline/ranks.h"
#include "pipeline/tune_times.h"

namespace gearshift {

class Tuner {
 public:
  // All references must outlive the tuner.
  Tuner(Session& session, const Registry& registry, const Progress& progress, TuneDevice device,
        Isolation isolation = nullptr, Ranks ranks = {})
      : session_(session),
        registry_(registry),
        progress_(progress),
        device_(std::move(device)),
        prover_(session, std::move(isolation)),
        ranks_(std::move(ranks)) {}

  Result<TuneReport> run();

 private:
  enum class Outcome : uint8_t { measured, reused, impossible, busy };

  // The layer that stands for a group, packed, with its judge. Each points at the one before.
  struct Prepared {
    std::unique_ptr<const Plan> plan;
    std::unique_ptr<PreparedLayer> layer;
    std::unique_ptr<Judge> judge;
  };

  std::vector<TuneGroup> groups_of(const Plan& listed) const;
  Result<Prepared> prepare_group(const TuneGroup& group);
  Result<void> tune_group(TuneGroup& group);
  void launch_first(const TuneGroup& group, const LayerPlan& plan);
  std::string work_of(const TuneGroup& group, int64_t m) const;
  Outcome reuse(TuneGroup& group, int64_t m);
  Result<Outcome> measure(TuneGroup& group, PreparedLayer& prepared, Judge& judge, int64_t m);
  // Those of `candidates` that are right at m; the others are quarantined.
  Result<std::vector<RaceEntry>> proven(const TuneGroup& group, PreparedLayer& prepared, Judge& judge, int64_t m);
  std::vector<StoreEntry> race_of(const TuneGroup& group, const PreparedLayer& prepared,
                                  const std::vector<RaceEntry>& entries, size_t incumbent, int64_t m,
                                  const RaceRules& rules);
  RaceRules rules_now() const;
  Result<void> settle(TuneGroup& group, Prepared& layer);
  Result<void> refine(TuneGroup& group, PreparedLayer& prepared, Judge& judge);
  Result<void> prove_edges(const TuneGroup& group, PreparedLayer& prepared, Judge& judge);
  Result<void> work_of_others(std::vector<TuneGroup>& groups);
  Result<void> close_gap(const Plan& listed, std::vector<TuneGroup>& groups);
  Result<void> repeat(TuneGroup& group, const ServedTime& doubtful);
  void leave_out(const TuneGroup& group, int64_t m, const RaceEntry* entry, const std::string& why);
  void quarantine(const TuneGroup& group, const PlannedRange& range, const RaceEntry& entry,
                  const ProofFailure& failure);
  bool out_of_time() const;
  void show_progress(const TuneGroup& group, int64_t m);

  Session& session_;
  const Registry& registry_;
  const Progress& progress_;
  TuneDevice device_;
  Prover prover_;
  Ranks ranks_;
  double started_s_ = 0;
  double savings_s_ = 0;  // seconds that races may take beyond their share
  size_t done_ = 0, total_ = 0;
  size_t measured_ = 0, reused_ = 0;
  std::set<std::pair<size_t, int64_t>> raced_;    // row and batch size of the races of this run
  std::vector<std::pair<size_t, int64_t>> busy_;  // row and batch size that another process is at
  std::vector<std::string> not_measured_;
};

}  // namespace gearshift
