// How long the threads of this process were ready to run and had no core.
#pragma once

#include <cstdint>
#include <vector>

namespace gearshift {

// Linux counts it for each thread (/proc/self/task/N/schedstat, the second number, nanoseconds).
class CoreWaits {
 public:
  CoreWaits() = default;
  CoreWaits(const CoreWaits&) = delete;
  CoreWaits& operator=(const CoreWaits&) = delete;
  ~CoreWaits() { close_all(); }

  // Since each thread began, in the order of the threads' numbers; the same threads as long as none comes or goes.
  // Empty where the system does not say.
  std::vector<uint64_t> read_ns();

 private:
  void open_all();
  void close_all();

  std::vector<int> files_;
  uint64_t threads_ = 0;
};

}  // namespace gearshift
