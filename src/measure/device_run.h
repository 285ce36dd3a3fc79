// Kernels of a device, run on matrices that lie in host memory, and timed where they run.
#pragma once

#include "gearshift/measure.h"

namespace gearshift {

// One call. Each matrix lies in a piece of host memory that travels as a whole, so that what stands around it
// (canaries, gaps between rows) is there on the device and comes back.
struct DeviceCall {
  const Kernel& kernel;
  const PreparedLayer& layer;
  ConstMatrix x;
  std::span<const uint8_t> x_memory;
  Matrix y;
  std::span<uint8_t> y_memory;
  std::span<uint8_t> workspace;
  std::span<uint8_t> workspace_memory;
  int threads = 1;
  int64_t expert = 0;
  std::string_view tactic = {};
};
// Copies everything to the device in use, launches, waits and copies y's memory back, and of the workspace's memory
// what stands around the workspace. Error runtime: what the device reports.
Result<void> run_on_device(const DeviceCall& call);

struct DeviceTimerLimits {
  int samples = 9;         // replays of the graph
  double graph_us = 1500;  // device time of one replay, about
  int64_t rotated_bytes =
      330'000'000;  // weights rotate over copies of this size in all: more than any second-level cache
  int64_t most_copy_bytes = int64_t{16} << 30;
};
// Median over replays of one CUDA graph of back-to-back calls, per call. Weights come from memory, because each call
// reads another copy; x and the workspace are the same in all calls. Clocks are those of a short burst: long work is
// preceded by a pause of a tenth of a second. `x` on the host.
Result<Timing> time_on_device(const Kernel& kernel, const PreparedLayer& layer, const ConstMatrix& x, int64_t expert,
                              std::string_view tactic = "", const DeviceTimerLimits& limits = {});

}  // namespace gearshift
