// Kernels of a device, run on matrices that lie in host memory, and timed where they run.
#pragma once

#include <memory>

#include "device/cuda.h"
#include "gearshift/measure.h"
#include "measure/host_laps.h"

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
      330'000'000;             // weights rotate over copies of this size in all: more than any second-level cache
  int64_t most_copies = 1024;  // of small weights, whose time is that of a launch
  int64_t most_copy_bytes = int64_t{16} << 30;
  bool graph = true;  // false: launched one by one, timed by the host
};
// Copies of a layer's packed weights on the device, which calls read in turn.
class RotatingWeights {
 public:
  // `packed`: `bytes` bytes on the device in use, the first copy; must outlive this. Error runtime: not enough memory.
  static Result<std::shared_ptr<const RotatingWeights>> make(const uint8_t* packed, int64_t bytes,
                                                             const DeviceTimerLimits& limits);
  int64_t count() const { return count_; }
  const uint8_t* copy(int64_t i) const { return i == 0 ? packed_ : memory_.data() + (i - 1) * stride_; }

 private:
  const uint8_t* packed_ = nullptr;
  DeviceBuffer memory_;
  int64_t count_ = 1, stride_ = 0;
};

// A kernel made ready to be timed: back-to-back calls recorded in one CUDA graph, or queued one by one. Weights come
// from memory, because each call reads another copy; x, y and the workspace are the same in all calls.
class DeviceLaps {
 public:
  // `x` on the host. The first calls are made here. Error runtime: what the device reports.
  static Result<DeviceLaps> make(const Kernel& kernel, const PreparedLayer& layer, const ConstMatrix& x, int64_t expert,
                                 std::string_view tactic = "", const DeviceTimerLimits& limits = {});
  // On copies that others read, too.
  static Result<DeviceLaps> make(const Kernel& kernel, const PreparedLayer& layer, const ConstMatrix& x, int64_t expert,
                                 std::string_view tactic, const DeviceTimerLimits& limits,
                                 std::shared_ptr<const RotatingWeights> weights);
  // Once through; microseconds per call.
  Result<double> lap_us();
  // As it was when the laps were made: says how many are worth taking.
  double first_us() const { return first_us_; }
  int64_t copies() const { return weights_->count(); }

 private:
  void queue(int64_t count, void* stream) const;

  const Kernel* kernel_ = nullptr;
  RunArgs args_;
  std::string tactic_;
  std::shared_ptr<const RotatingWeights> weights_;
  std::vector<DeviceBuffer> memory_;
  std::optional<cuda::Graph> graph_;  // none: eager
  int64_t count_ = 0;
  double first_us_ = 0;
};
// Laps of all entries of a race; those of one layout read the same copies. A lap that the device failed is infinite.
// Error runtime: not enough memory, what the device reports.
Result<Lap> laps_on_device(const RaceSetting& setting);
// Median over laps. Clocks are those of a short burst: long work is preceded by a pause of a tenth of a second.
Result<Timing> time_on_device(const Kernel& kernel, const PreparedLayer& layer, const ConstMatrix& x, int64_t expert,
                              std::string_view tactic = "", const DeviceTimerLimits& limits = {});

}  // namespace gearshift
