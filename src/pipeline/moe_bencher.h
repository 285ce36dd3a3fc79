// Times expert blocks: grouped calls against one call per expert, under uniform and skewed routing.
#pragma once

#include "measure/ceilings/meter.h"
#include "measure/experts_cell.h"
#include "measure/rotating_experts.h"
#include "pipeline/bench_job.h"

namespace gearshift {

class MoeBencher {
 public:
  // All arguments must outlive the bencher.
  MoeBencher(const BenchJob& job, const Registry& registry, const Progress& progress)
      : job_(job), registry_(registry), progress_(progress) {}

  Result<BenchReport> run();

 private:
  // One batch size under one routing, both ways of running it.
  struct Cell {
    int64_t m = 0;
    double skew = 0;
    std::vector<MadeUpRouting> choices;  // taken in turn
    OwnedMatrix x, y;
    std::unique_ptr<ExpertScratch> scratch;
    Comparison comparison;
    std::vector<double> grouped_us, one_by_one_us;
    size_t turn = 0;
  };

  Result<void> plan(Plan& plan) const;
  Result<void> time_block(const MoeShape& shape, const LayerPlan& first, const LayerPlan& second, CeilingMeter& meter,
                          uint64_t bytes, BenchReport& report);
  Result<Cell> make_cell(const MoeShape& shape, const RotatingExperts& experts, int64_t m, double skew) const;
  void take(Cell& cell, RotatingExperts& experts) const;
  void add_rows(const MoeShape& shape, const Cell& cell, const RotatingExperts& experts, BenchReport& report);
  void add_floors(BenchReport& report) const;

  // What a floor is made of, in the order of the report's rows.
  struct Load {
    const LayerPlan *first, *second;
    std::vector<std::vector<int64_t>> rows;  // of every choice, of every expert that got any
  };

  const BenchJob& job_;
  const Registry& registry_;
  const Progress& progress_;
  std::vector<Load> loads_;
  size_t done_ = 0, total_ = 0;
};

}  // namespace gearshift
