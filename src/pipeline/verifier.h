// Proves every (layer, kernel) pair that a plan can use.
#pragma once

#include "pipeline/prover.h"
#include "pipeline/value_notes.h"

namespace gearshift {

class Verifier {
 public:
  // All arguments must outlive the verifier.
  Verifier(Session& session, const Registry& registry, const Progress& progress, Isolation isolation = nullptr)
      : session_(session), registry_(registry), progress_(progress), prover_(session, std::move(isolation)) {}

  // Failures are no error: they are quarantined in the report. Errors: damaged_checkpoint, usage, runtime, and those of
  // planning.
  Result<VerifyReport> run();

 private:
  Result<void> verify_layer(size_t index, bool first_of_class, VerifyReport& report);
  // The first launches, in a child. False: the kernel did not survive them, and is quarantined.
  bool launch_kernel(const Kernel& kernel, const LayerPlan& plan, bool first_of_class, VerifyReport& report);
  using Kernels = std::vector<const Kernel*>;
  // The shards of all ranks, and that together they are the layer.
  Result<void> verify_shards(const LayerPlan& plan, const Kernels& kernels, bool first_of_class, VerifyReport& report);
  // `whose`: "rank 1", or "" where all ranks hold the same.
  Result<void> verify_prepared(PreparedLayer& prepared, const Kernels& kernels, bool first_of_class,
                               const std::string& whose, VerifyReport& report);
  void verify_kernel(const Kernel& kernel, const PreparedLayer& prepared, int64_t expert, bool all_sizes,
                     const std::string& whose, Judge& judge, VerifyReport& report);
  void verify_range(const Kernel& kernel, std::string_view tactic, const PlannedRange& range,
                    const PreparedLayer& prepared, int64_t expert, bool all_sizes, const std::string& whose,
                    Judge& judge, VerifyReport& report);
  void quarantine(const Kernel& kernel, const LayerPlan& plan, const PlannedRange& range, const Measurement& row);

  Session& session_;
  const Registry& registry_;
  const Progress& progress_;
  std::vector<int64_t> batch_;
  Prover prover_;
  ValueNotes notes_;
};

}  // namespace gearshift
