// Measures what this machine can do at most: memory read and arithmetic, on the threads that kernels run on.
#pragma once

#include "gearshift/measure.h"
#include "gearshift/prepare.h"
#include "measure/ceilings/peaks.h"
#include "measure/ceilings/reads.h"

namespace gearshift {

// Samples are taken in between those of kernels, so that a slow minute of the machine slows both.
class CeilingMeter {
 public:
  // `read_bytes` of memory (far more than caches hold) on 2 MB pages where the system has them; finds the best read
  // shapes and the number of rounds of each peak. Error runtime: not enough memory.
  static Result<CeilingMeter> make(Isa isa, int threads, size_t read_bytes);

  // One sample of each read shape and a few of each peak, some 100 ms.
  void sample();
  // Medians of the samples. REQUIRES: sample() was called.
  std::vector<Ceiling> ceilings() const;

 private:
  struct PeakMeter {
    Peak peak;
    int64_t rounds = 1;
    std::vector<double> per_second;  // 1e9 operations
  };
  double read_once(const ReadShape& shape);  // GB/s
  double run_once(const Peak& peak, int64_t rounds, double& seconds);

  int threads_ = 1;
  AlignedBuffer memory_;
  // The quickest few shapes: a single look at each does not tell them apart for good.
  struct ReadMeter {
    ReadShape shape;
    double first = 0;                // GB/s, before any sample
    std::vector<double> per_second;  // GB/s
  };
  std::vector<ReadMeter> reads_;
  std::vector<PeakMeter> peaks_;
  uint64_t sink_ = 0;
};

}  // namespace gearshift
