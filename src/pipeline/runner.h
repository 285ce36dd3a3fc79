// Runs the rows of a plan: prepare, prove, quarantine and re-plan where a kernel is wrong, then measure.
#pragma once

#include <memory>
#include <set>

#include "measure/experts_cell.h"
#include "pipeline/prover.h"
#include "pipeline/run_inputs.h"
#include "pipeline/session.h"
#include "pipeline/value_notes.h"

namespace gearshift {

class Runner {
 public:
  // All arguments must outlive the runner.
  Runner(Session& session, const Registry& registry, const Progress& progress, Isolation isolation = nullptr)
      : session_(session), registry_(registry), progress_(progress), prover_(session, std::move(isolation)) {}

  // Errors: usage, damaged_checkpoint, runtime, no_kernel, fallback_refused, and self_check where no healthy kernel is
  // left.
  Result<RunReport> run();

 private:
  struct Done {
    std::vector<Measurement> rows;  // one per batch size
    std::vector<size_t> replaces;   // rows of the plan that these measurements include
    std::vector<uint8_t> output;    // [M, columns] of the job, where a file is asked for
    int64_t m = 0;
  };

  Result<RunJobs> jobs();
  // Runs one job; a kernel that gave wrong numbers comes back as the quarantine to impose.
  Result<std::optional<Quarantine>> run_job(const RunJob& job, Done& done);
  std::optional<Quarantine> launch_class(const LayerPlan& plan);
  // The same for an expert block: both rows proven, then the block as one.
  Result<std::optional<Quarantine>> run_block(const RunJob& job, Done& done);
  // What a verdict on a block means: nothing, a quarantine of one projection's kernel, or an error where no kernel is
  // at fault.
  Result<std::optional<Quarantine>> consequence(const RunJob& job, const ExpertsVerdict& verdict) const;
  std::optional<Quarantine> prove_class(const PreparedLayer& prepared, int64_t expert, Judge& judge);
  Result<std::optional<Quarantine>> measure(const RunJob& job, const PreparedLayer& prepared, int64_t expert,
                                            Judge& judge, Done& done);
  Result<void> impose(const Quarantine& quarantine);
  Result<void> write_output(const std::vector<RunJob>& jobs, const std::vector<Done>& done) const;

  Session& session_;
  const Registry& registry_;
  const Progress& progress_;
  std::unique_ptr<const Plan> plan_;
  Prover prover_;
  ValueNotes notes_;
  std::set<std::string> proven_blocks_;  // classes of both rows and their kernels
};

}  // namespace gearshift
