// What tuning asks of the device it runs on. Tests answer with scripts.
#pragma once

#include <functional>

#include "gearshift/measure.h"

namespace gearshift {

struct TimedLaunch {
  const Kernel* kernel = nullptr;
  std::string_view tactic;
  int64_t m = 0;
  std::string_view mode;         // "graph" or "eager"
  std::function<void()> launch;  // once
};

struct TuneDevice {
  // Microseconds of one launch, in the mode in which kernels will run.
  std::function<double(const TimedLaunch&)> time_us;
  // Puts the weights that `kernel` reads out of every cache: in a model, other layers ran in between.
  std::function<void(const PreparedLayer&, const Kernel&, int64_t expert)> make_cold;
  std::function<bool()> capturing;       // a graph is being recorded: nothing may be launched, allocated or waited for
  std::function<uint64_t()> free_bytes;  // 0: unknown
  std::function<double()> now_s;         // a clock that never goes back
};

// This machine's CPU.
TuneDevice host_tune_device();

}  // namespace gearshift
