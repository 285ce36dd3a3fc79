// The door to CUDA: what the run-time library and the driver say, streams in the form of captured graphs, and libraries
// that are opened at run time. All of it can be called in a build without CUDA code: then there are no devices.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "gearshift/device.h"

namespace gearshift::cuda {

// Architectures that kernels of this build have machine code for: {"sm_80", "sm_90a"}; {"none"} without CUDA code.
const std::vector<std::string_view>& code_targets();
// Why cuda_devices() is empty, and what helps.
ErrorInfo no_device(std::string_view asked);

// Limits of the device in use that launches depend on; zeros without one.
struct Limits {
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  // with opt-in
  int shared_bytes_per_multiprocessor = 0;
  int major = 0, minor = 0;
};
const Limits& limits();

// Memory of the device in use that is not taken; 0: unknown.
uint64_t free_bytes();
Result<void> fill(void* device, uint8_t byte, size_t bytes);
// From device memory to device memory.
Result<void> copy(void* to, const void* from, size_t bytes);
// Rows of `bytes` bytes, from one memory to the other (either may be the host's), each with its distance between rows.
Result<void> copy_rows(void* to, size_t to_stride, const void* from, size_t from_stride, size_t bytes, size_t rows);
// Waits for all queued work. Error runtime: what went wrong in it.
Result<void> synchronize();

// Work recorded once and replayed: how short calls are timed without the host in between.
class Graph {
 public:
  // Records what `body` queues on the stream it is given.
  static Result<Graph> capture(const std::function<void(void* stream)>& body);
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  ~Graph();
  // Runs it once; device time in microseconds.
  Result<double> replay_us();

 private:
  Graph() = default;
  void* stream_ = nullptr;
  void* graph_ = nullptr;
  void* executable_ = nullptr;
  void* begin_ = nullptr;
  void* end_ = nullptr;
};

// ---- libraries opened at run time ----

// Whether libcublasLt could be opened (asked once a process).
bool has_cublaslt();
std::string cublaslt_version();  // "13.1.0"; "" without it
std::string runtime_version();   // of the CUDA run-time library in this build: "13.0"; ""
// NVML's current clocks of device `index` in MHz (0 where it does not say).
struct Clocks {
  unsigned multiprocessor_mhz = 0, memory_mhz = 0;
};
Clocks clocks(int index);

}  // namespace gearshift::cuda
