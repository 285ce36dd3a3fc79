// Measures the kernels that a plan can use, and keeps what it learns.
#pragma once

#include <map>

#include "measure/time_kernels.h"
#include "pipeline/prover.h"
#include "pipeline/ranks.h"

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
  // Layers that get one decision: the first of them is measured.
  struct Group {
    size_t row = 0;                          // of the session
    std::shared_ptr<const Decision> listed;  // what the lists alone say
    std::vector<int64_t> points;             // batch sizes measured so far
    bool tunable = false;
  };
  enum class Outcome : uint8_t { measured, reused, impossible, busy };

  std::vector<Group> groups_of(const Plan& listed) const;
  std::vector<const Kernel*> candidates(const Group& group, int64_t m) const;
  const MeasuredTime* time_of(const Kernel& kernel, const std::string& layer_class, int64_t m) const;
  bool is_hopeless(const Group& group, const Kernel& kernel, int64_t m) const;

  Result<void> tune_group(Group& group);
  Result<Outcome> measure(Group& group, PreparedLayer& prepared, Judge& judge, int64_t m);
  void launch_small_batches(const Group& group, const PreparedLayer& prepared);
  bool matters(const Group& group, const Kernel& a, const Kernel& b, int64_t low, int64_t high) const;
  Result<void> refine(Group& group, PreparedLayer& prepared, Judge& judge);
  Result<void> prove_edges(const Group& group, PreparedLayer& prepared, Judge& judge);
  Result<void> work_of_others(std::vector<Group>& groups);
  void leave_out(const Group& group, int64_t m, std::string_view kernel, const std::string& why);
  void quarantine(const Group& group, const Kernel& kernel, const ProofFailure& failure);
  bool out_of_time() const;
  void show_progress(const Group& group, int64_t m);
  Result<void> agree();
  void fill(TuneReport& report, const Plan& before, const Plan& listed, const std::vector<Group>& groups) const;
  Comparison proof_of(const Kernel& kernel, const std::string& layer_class, int64_t m) const;

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
  std::vector<std::pair<size_t, int64_t>> busy_;  // row and batch size that another process is at
  std::vector<std::string> not_measured_;
};

}  // namespace gearshift
