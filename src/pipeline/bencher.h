// Chooses a kernel for each cell, checks it, and times cells and ceilings in turn.
#pragma once

#include "measure/bench_cell.h"
#include "measure/ceilings/meter.h"
#include "measure/device_ceilings.h"
#include "pipeline/bench_job.h"

namespace gearshift {

class Bencher {
 public:
  // All arguments must outlive the bencher.
  Bencher(const BenchJob& job, const Registry& registry, const Progress& progress)
      : job_(job), registry_(registry), progress_(progress) {}

  Result<BenchReport> run();

 private:
  struct Choice {
    const Kernel* kernel = nullptr;
    std::string asked;    // the backend or kernel that was asked for, where it is refused
    std::string refused;  // why
  };
  struct Target {
    const BenchTarget* what = nullptr;
    std::vector<Choice> choices;  // by batch size
  };

  Result<void> choose(Plan& plan);
  Result<void> on_host(BenchReport& report);
  Result<void> on_device(BenchReport& report);
  Result<void> time_on_host(const Target& target, CeilingMeter& meter, uint64_t rotate_bytes, BenchReport& report);
  Result<void> time_on_device(const Target& target, DeviceCeilings& ceilings, BenchReport& report);
  BenchRow row_of(const Target& target, size_t batch) const;
  void step(const BenchTarget& target, int64_t m);

  const BenchJob& job_;
  const Registry& registry_;
  const Progress& progress_;
  std::vector<Target> targets_;
  size_t done_ = 0, total_ = 0;
};

}  // namespace gearshift
