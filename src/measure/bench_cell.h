// One kernel at one batch size on a rotating layer: checked once, then timed in portions.
#pragma once

#include <chrono>

#include "measure/activations.h"
#include "measure/judge.h"
#include "measure/rotating_layer.h"

namespace gearshift {

class BenchCell {
 public:
  // Error runtime: not enough memory. `layer` must outlive the cell.
  static Result<BenchCell> make(const Kernel& kernel, RotatingLayer& layer, int64_t m, DType dtype, uint64_t seed,
                                int threads);

  // Runs into poisoned memory and judges: outliers, zeros and subnormal numbers among the activations. Afterwards they
  // are plain ones.
  const Comparison& check(Judge& judge);
  // Up to `samples` calls, or until the time is spent; each call is one sample. Short ones are warmed up by another.
  void take(int samples, std::chrono::microseconds budget);

  const Kernel& kernel() const { return *kernel_; }
  int64_t m() const { return x_.rows; }
  const Comparison& comparison() const { return comparison_; }
  // nullopt: nothing was timed.
  std::optional<Timing> timing() const;

 private:
  double call();  // microseconds

  double last_us_ = 0;
  const Kernel* kernel_ = nullptr;
  RotatingLayer* layer_ = nullptr;
  OwnedMatrix x_, y_, workspace_;
  uint64_t seed_ = 0;
  int threads_ = 1;
  Comparison comparison_;
  std::vector<double> samples_us_;
};

}  // namespace gearshift
