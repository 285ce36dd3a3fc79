#include "measure/tune_device.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "base/try.h"
#include "device/cuda.h"
#include "measure/activations.h"
#include "measure/device_run.h"

namespace gearshift {

namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// What can be had without swapping: the system's own estimate, which counts what it would give back of its caches.
uint64_t free_memory() {
  std::ifstream file("/proc/meminfo");
  std::string field;
  uint64_t kibibytes = 0;
  while (file >> field) {
    if (field == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  const long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : 0;
}

}  // namespace

TuneDevice host_tune_device() {
  const auto start = [clock = host_clock()](const RaceSetting& setting) { return laps_on_host(clock, setting); };
  return {start, [] { return false; }, free_memory, seconds};
}

Result<TuneDevice> tune_device_of(const DeviceProfile& device) {
  if (device.platform == Platform::cpu) return host_tune_device();
  if (device.platform == Platform::cuda)
    return TuneDevice{laps_on_device, [] { return false; }, cuda::free_bytes, seconds};
  return ErrorInfo{ErrorCode::usage, "tune", device.name, "a CPU or a CUDA device", "--device cpu", {}};
}

}  // namespace gearshift
