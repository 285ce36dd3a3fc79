// Timed launches of kernels of this machine's CPU.
#pragma once

#include <functional>

#include "measure/race.h"

namespace gearshift {

struct RaceEntry {
  const Kernel* kernel = nullptr;
  std::string tactic;

  bool operator==(const RaceEntry&) const = default;
};
// What all launches of a race have in common.
struct RaceSetting {
  const PreparedLayer& layer;
  int64_t expert = 0;
  const std::vector<RaceEntry>& entries;
  int64_t m = 1;
  DType dtype = DType::bf16;
  std::string_view mode;  // "graph" or "eager"
  uint64_t seed = 0;
  int threads = 1;
  int64_t scratch_bytes = 0;  // the most that an entry needs
};

struct TimedLaunch {
  const Kernel* kernel = nullptr;
  std::string_view tactic;
  int64_t m = 0;
  std::string_view mode;
  std::function<void()> launch;  // once
};
// One launch by the clock, and the longest that a thread of this process was ready meanwhile and had no core.
struct LapTime {
  double us = 0, waited_us = 0;
};
// How a launch is timed. Tests bring their own.
struct HostClock {
  std::function<LapTime(const TimedLaunch&)> time;
  // Puts the weights that `kernel` reads out of every cache: in a model, other layers ran in between.
  std::function<void(const PreparedLayer&, const Kernel&, int64_t expert)> make_cold;
};
HostClock host_clock();

// Laps on matrices of their own: activations within the range that the layer's scales were made for, cold weights. What
// its threads waited for a core is other processes' time, and taken off; a lap that waited longer than it ran is run
// again, a few times at most. Error runtime: not enough memory. REQUIRES: what `setting` refers to outlives the laps.
Result<Lap> laps_on_host(const HostClock& clock, const RaceSetting& setting);

}  // namespace gearshift
