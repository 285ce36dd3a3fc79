// Scratch for calls that bring none.
#pragma once

#include <map>
#include <mutex>

#include "border.h"
#include "gearshift/run.h"

namespace gearshift::c {

// Shared by all layers of the process: the largest need decides, not their sum. Host memory goes from call to call; on
// a GPU each stream has its own, because its calls run one after the other.
class Workspaces {
 public:
  static Workspaces& shared();

  // Host memory that belongs to one call; it goes back when the call ends.
  class OnHost {
   public:
    OnHost(Workspaces& from, AlignedBuffer buffer) : from_(&from), buffer_(std::move(buffer)) {}
    OnHost(OnHost&& other) noexcept : from_(other.from_), buffer_(std::move(other.buffer_)) { other.from_ = nullptr; }
    OnHost& operator=(OnHost&&) = delete;
    ~OnHost();
    std::span<uint8_t> span() { return buffer_.span(); }

   private:
    Workspaces* from_;
    AlignedBuffer buffer_;
  };
  // Error runtime: not enough memory.
  Result<OnHost> on_host(int64_t bytes);
  // REQUIRES: `device` is the device in use. Error runtime: what the device reports.
  Result<std::span<uint8_t>> on_device(const DeviceProfile& device, void* stream, int64_t bytes);

 private:
  std::mutex mutex_;
  std::vector<AlignedBuffer> idle_;
  std::map<std::pair<int, void*>, DeviceBuffer> by_stream_;
};

}  // namespace gearshift::c
