// The devices one can plan for without having them, and how a name finds one.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "gearshift/device.h"

namespace gearshift {

namespace {

// Multiprocessors and memory are those of the most common board; 0 where boards differ or nothing is published.
struct KnownDevice {
  std::string_view name;
  Platform platform;
  std::string_view arch;
  std::string_view aliases;  // separated by blanks
  int cores;
  int memory_gib;
};

// The first device of an architecture is the one that the architecture's name stands for.
constexpr std::array kDevices = {
    KnownDevice{"NVIDIA V100", Platform::cuda, "sm_70", "v100 tesla-v100 volta", 80, 32},
    KnownDevice{"NVIDIA T4", Platform::cuda, "sm_75", "t4 tesla-t4 turing", 40, 16},
    KnownDevice{"NVIDIA A100", Platform::cuda, "sm_80", "a100 ampere", 108, 80},
    KnownDevice{"NVIDIA A30", Platform::cuda, "sm_80", "a30", 56, 24},
    KnownDevice{"NVIDIA A10", Platform::cuda, "sm_86", "a10 a10g", 72, 24},
    KnownDevice{"NVIDIA A40", Platform::cuda, "sm_86", "a40", 84, 48},
    KnownDevice{"NVIDIA RTX A6000", Platform::cuda, "sm_86", "a6000 rtx-a6000", 84, 48},
    KnownDevice{"NVIDIA GeForce RTX 3090", Platform::cuda, "sm_86", "rtx-3090 3090", 82, 24},
    KnownDevice{"NVIDIA Jetson AGX Orin", Platform::cuda, "sm_87", "orin agx-orin", 16, 64},
    KnownDevice{"NVIDIA L4", Platform::cuda, "sm_89", "l4 ada", 58, 24},
    KnownDevice{"NVIDIA L40S", Platform::cuda, "sm_89", "l40s", 142, 48},
    KnownDevice{"NVIDIA GeForce RTX 4090", Platform::cuda, "sm_89", "rtx-4090 4090", 128, 24},
    KnownDevice{"NVIDIA H100", Platform::cuda, "sm_90", "h100 sm_90a hopper", 132, 80},
    KnownDevice{"NVIDIA H200", Platform::cuda, "sm_90", "h200", 132, 141},
    KnownDevice{"NVIDIA H20", Platform::cuda, "sm_90", "h20", 78, 96},
    KnownDevice{"NVIDIA GH200", Platform::cuda, "sm_90", "gh200", 132, 96},
    KnownDevice{"NVIDIA B200", Platform::cuda, "sm_100", "b200 sm_100a sm_100f blackwell", 148, 180},
    KnownDevice{"NVIDIA GB200", Platform::cuda, "sm_100", "gb200", 148, 186},
    KnownDevice{"NVIDIA B300", Platform::cuda, "sm_103", "b300 sm_103a blackwell-ultra", 0, 0},
    KnownDevice{"NVIDIA GB300", Platform::cuda, "sm_103", "gb300", 0, 0},
    KnownDevice{"NVIDIA Jetson AGX Thor", Platform::cuda, "sm_110", "thor agx-thor sm_110a", 20, 128},
    KnownDevice{"NVIDIA GeForce RTX 5090", Platform::cuda, "sm_120", "rtx-5090 5090 sm_120a sm_120f", 170, 32},
    KnownDevice{"NVIDIA RTX PRO 6000 Blackwell", Platform::cuda, "sm_120", "rtx-pro-6000 pro-6000", 188, 96},
    KnownDevice{"NVIDIA GB10", Platform::cuda, "sm_121", "gb10 dgx-spark spark sm_121a", 48, 128},
    KnownDevice{"AMD Instinct MI300X", Platform::rocm, "gfx942", "mi300x mi300", 304, 192},
    KnownDevice{"AMD Instinct MI325X", Platform::rocm, "gfx942", "mi325x", 304, 256},
    KnownDevice{"AMD Instinct MI355X", Platform::rocm, "gfx950", "mi355x mi350x mi350", 256, 288},
    KnownDevice{"AMD Radeon RX 7900 XTX", Platform::rocm, "gfx1100", "rx-7900-xtx 7900-xtx", 96, 24},
    KnownDevice{"AMD Radeon RX 9060 XT", Platform::rocm, "gfx1200", "rx-9060-xt 9060-xt", 32, 16},
    KnownDevice{"AMD Radeon RX 9070 XT", Platform::rocm, "gfx1201", "rx-9070-xt 9070-xt r9700", 64, 16},
    KnownDevice{"AMD gfx1250", Platform::rocm, "gfx1250", "", 0, 0},
    KnownDevice{"Intel Arc B580", Platform::xpu, "xe2", "xpu b580 arc-b580 battlemage", 20, 12},
    KnownDevice{"Intel Data Center GPU Max 1550", Platform::xpu, "xe_hpc", "max-1550 pvc ponte-vecchio", 128, 128},
};

DeviceProfile profile(const KnownDevice& device) {
  DeviceProfile out;
  out.name = device.name;
  out.platform = device.platform;
  out.arch = device.arch;
  for (std::string& alias : split(device.aliases, ' ')) {
    if (!alias.empty()) out.aliases.push_back(std::move(alias));
  }
  out.cores = device.cores;
  out.memory_bytes = static_cast<uint64_t>(device.memory_gib) << 30;
  return out;
}

// "RTX PRO 6000", "rtx-pro-6000" and "rtx_pro_6000" are one name.
std::string key(std::string_view text) {
  std::string out = lower(text);
  std::erase_if(out, [](char c) { return c == '-' || c == '_' || c == ' '; });
  return out;
}

bool answers_to(const DeviceProfile& device, const std::string& wanted) {
  if (key(device.arch) == wanted || key(device.name) == wanted) return true;
  const size_t vendor = device.name.find(' ');
  if (!device.present && vendor != std::string::npos && key(device.name.substr(vendor + 1)) == wanted) return true;
  return std::any_of(device.aliases.begin(), device.aliases.end(),
                     [&](const auto& alias) { return key(alias) == wanted; });
}

// "cuda" or "cuda:<digits>" (and the same for rocm): a device of this machine.
std::optional<Platform> local_platform(const std::string& wanted) {
  const size_t colon = wanted.find(':');
  const std::string index = colon == std::string::npos ? "0" : wanted.substr(colon + 1);
  if (!parse_integer(index) || index.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  for (Platform platform : {Platform::cuda, Platform::rocm}) {
    if (wanted.substr(0, colon) == name(platform)) return platform;
  }
  return std::nullopt;
}

ErrorInfo not_here(std::string_view asked, Platform platform) {
  const bool cuda = platform == Platform::cuda;
  return {ErrorCode::usage,
          "--device " + printable(asked),
          std::string("no ") + (cuda ? "CUDA" : "ROCm") + " device that this build can use on this machine",
          "a device that is here",
          std::string("to plan for one that is not here, name it, for example --device ") + (cuda ? "sm_90" : "gfx950"),
          {}};
}

ErrorInfo unknown_device(std::string_view asked, const std::vector<DeviceProfile>& known) {
  ErrorInfo error{ErrorCode::usage, "--device", printable(asked), "cpu, cuda, cuda:<number> or a known device", "", {}};
  std::vector<std::string_view> names = {"cpu", "cuda"};
  for (const DeviceProfile& device : known) {
    names.push_back(device.arch);
    names.insert(names.end(), device.aliases.begin(), device.aliases.end());
    if (!device.present)
      error.details.push_back(device.arch + ": " + device.name + " (" + join(device.aliases, ", ") + ")");
  }
  const std::vector<std::string> near = near_names(lower(asked), names);
  error.hint = near.empty() ? "`gearshift devices` lists them" : "did you mean " + join(near, ", ") + "?";
  return error;
}

}  // namespace

std::vector<DeviceProfile> known_devices(const DeviceProfile& host) {
  std::vector<DeviceProfile> out = {host};
  for (const KnownDevice& device : kDevices) out.push_back(profile(device));
  return out;
}

Result<DeviceProfile> find_device(std::string_view name, const DeviceProfile& host) {
  const std::string wanted = key(name);
  if (wanted == "cpu") return host;
  if (const auto platform = local_platform(wanted)) return not_here(name, *platform);
  std::vector<DeviceProfile> known = known_devices(host);
  for (DeviceProfile& device : known) {
    if (!wanted.empty() && answers_to(device, wanted)) return std::move(device);
  }
  return unknown_device(name, known);
}

}  // namespace gearshift
