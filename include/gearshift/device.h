// What this machine, or a named one, is. Profiles are data; nothing here launches anything.
#pragma once

#include "gearshift/base.h"

namespace gearshift {

enum class Platform : uint8_t { cpu, cuda, rocm, xpu };
std::string_view name(Platform platform);

// Instruction sets of a CPU, each level including those before it. GEARSHIFT_MAX_ISA names one to step down to.
enum class Isa : uint8_t { portable, avx2, avx512, avx512_vnni, avx512_bf16, amx, neon };
std::string_view name(Isa isa);
std::optional<Isa> parse_isa(std::string_view name);
// True when a CPU at `have` executes code written for `need` (portable runs everywhere, neon only on Arm).
bool isa_covers(Isa have, Isa need);

// Operations per second of the matrix units, in 10^12, without sparsity and with 32-bit accumulation where there is a choice.
// 0: the device has no such unit, or its maker publishes no figure.
struct PeakRates {
  double fp16 = 0, bf16 = 0, fp8 = 0, int8 = 0, fp4 = 0;
};

struct DeviceProfile {
  std::string name;                  // "AMD EPYC 9B45", "NVIDIA H200"
  Platform platform = Platform::cpu;
  std::string arch;                  // "x86_64+avx512_bf16", "sm_90", "gfx950"
  int capability = 0;                // 10 * major + minor: sm_90 is 90, gfx942 is 94, gfx1201 is 120; 0 where there is none
  Isa isa = Isa::portable;           // CPUs only
  std::vector<std::string> aliases;  // names accepted by --device
  bool present = false;              // this machine has it
  std::string other_identity;        // the device that a management library lists at the same index, where it is another one; shown, never asked
  int cores = 0;                     // CPU cores this process may use, or multiprocessors; 0 unknown
  uint64_t memory_bytes = 0;         // 0 unknown
  double read_gbytes_per_s = 0;      // memory bandwidth as published, 10^9 bytes a second; 0 unknown
  PeakRates peak;
  std::string figures_from;          // where memory, bandwidth and peak rates are published; "" for this machine
  int index = 0;                     // among this machine's devices of its platform
  std::string driver;                // "580.159.04"; "" for CPUs and for devices that are not here
};

// 10 * major + minor of an architecture's name ("sm_121": 121, "gfx942": 94); 0 for any other name.
int capability_of(std::string_view arch);

// The CPU of this machine, after GEARSHIFT_MAX_ISA (the value is an argument: options are read in one place).
// Error usage: an unknown name.
Result<DeviceProfile> host_cpu(std::string_view max_isa = "");
// This machine's CUDA devices, as the driver reports them; none without a driver, a device, or CUDA code in this build.
std::vector<DeviceProfile> cuda_devices();
// Every known device, this machine's first. An architecture's name stands for its first product.
std::vector<DeviceProfile> known_devices(const DeviceProfile& host);
// By name, arch or alias, in any case, hyphens, underscores and blanks alike; "cpu" is the host. Error usage: lists near and valid names.
Result<DeviceProfile> find_device(std::string_view name, const DeviceProfile& host);

// Memory of the CUDA device in use (the first one unless use_device chose another). Movable, not copyable.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // Contents undefined, 256-byte aligned. Error runtime: no device, or not enough memory.
  static Result<DeviceBuffer> allocate(size_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();
  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<uint8_t> span() { return {data_, size_}; }
  // Copies between host memory and the first `bytes` bytes; returns when the copy is done. Error runtime: what the device
  // reports, a failure of an earlier launch included.
  Result<void> write(const void* from, size_t bytes);
  Result<void> read(void* to, size_t bytes) const;

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};
// Makes this the device that buffers, packing and launches of the calling thread use. Nothing to do for a CPU.
Result<void> use_device(const DeviceProfile& device);

}  // namespace gearshift
