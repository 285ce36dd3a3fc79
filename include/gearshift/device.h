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

struct DeviceProfile {
  std::string name;                  // "AMD EPYC 9B45", "NVIDIA H200"
  Platform platform = Platform::cpu;
  std::string arch;                  // "x86_64+avx512_bf16", "sm_90", "gfx950"
  Isa isa = Isa::portable;           // CPUs only
  std::vector<std::string> aliases;  // names accepted by --device
  bool present = false;              // this machine has it
  int cores = 0;                     // CPU cores this process may use, or multiprocessors; 0 unknown
  uint64_t memory_bytes = 0;         // 0 unknown
};

// The CPU of this machine, after GEARSHIFT_MAX_ISA (the value is an argument: options are read in one place).
// Error usage: an unknown name.
Result<DeviceProfile> host_cpu(std::string_view max_isa = "");
// Every known device, this machine's first.
std::vector<DeviceProfile> known_devices(const DeviceProfile& host);
// By name, arch or alias, any case; "cpu" is the host. Error usage: lists near and valid names.
Result<DeviceProfile> find_device(std::string_view name, const DeviceProfile& host);

}  // namespace gearshift
