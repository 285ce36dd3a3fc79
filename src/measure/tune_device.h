// What tuning asks of the device it runs on. Tests answer with scripts.
#pragma once

#include <functional>

#include "measure/host_laps.h"

namespace gearshift {

struct TuneDevice {
  // Gets everything ready to launch each entry of a race, in the mode in which kernels will run: matrices, scratch,
  // what keeps weights cold. The laps hold it; it is gone when they are. Error runtime: not enough memory, the device's
  // own.
  std::function<Result<Lap>(const RaceSetting&)> start;
  std::function<bool()> capturing;       // a graph is being recorded: nothing may be launched, allocated or waited for
  std::function<uint64_t()> free_bytes;  // 0: unknown
  std::function<double()> now_s;         // a clock that never goes back
};

// This machine's CPU.
TuneDevice host_tune_device();
// The device that a plan is made for. Error usage: one whose kernels this version cannot time.
Result<TuneDevice> tune_device_of(const DeviceProfile& device);

}  // namespace gearshift
