// How long a call takes.
#pragma once

#include <chrono>
#include <functional>

#include "gearshift/measure.h"

namespace gearshift {

struct TimerLimits {
  int samples = 25;                                // at most
  std::chrono::microseconds time_budget{200'000};  // no further sample once this is spent; one is always taken
};

// Calls once to warm up, then until a limit is met; every call is one sample. The median is what a row shows: the mean
// follows interruptions, the minimum promises what rarely happens.
Timing time_calls(const std::function<void()>& call, TimerLimits limits = {});

struct Quantiles {
  double median = 0, p10 = 0, p90 = 0;
  int samples = 0;
};
// Median, 10th and 90th percentile (nearest rank). REQUIRES: not empty.
Quantiles quantiles(std::vector<double> samples);
Timing summarize(std::vector<double> samples_us);

}  // namespace gearshift
