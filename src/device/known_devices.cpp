// The devices one can plan for without having them.
#include <array>

#include "base/text.h"
#include "gearshift/device.h"

namespace gearshift {

namespace {

// Cores (multiprocessors, compute units, Xe cores), memory and bandwidth are those of the most common board, as
// published in `from`; rates are dense. 0 where boards differ or nothing is published. Memory is built from chips of
// 2^30 bytes, whatever unit the data sheet prints.
struct KnownDevice {
  std::string_view name;
  Platform platform;
  std::string_view arch;
  std::string_view aliases;  // separated by blanks
  int cores;
  int memory_gib;
  double read_gbytes_per_s;
  PeakRates peak;
  std::string_view from;
};

// The first device of an architecture is the one that the architecture's name stands for. A CPU here is a feature
// level: what it has besides depends on the machine.
// clang-format off
constexpr std::array kDevices = {
    KnownDevice{"NVIDIA V100", Platform::cuda, "sm_70", "v100 tesla-v100 volta", 80, 32, 900, {.fp16 = 125}, "NVIDIA V100 data sheet, SXM2"},
    KnownDevice{"NVIDIA T4", Platform::cuda, "sm_75", "t4 tesla-t4 turing", 40, 16, 320, {.fp16 = 65, .int8 = 130}, "NVIDIA T4 data sheet"},
    KnownDevice{"NVIDIA A100", Platform::cuda, "sm_80", "a100 ampere", 108, 80, 2039, {.fp16 = 312, .bf16 = 312, .int8 = 624}, "NVIDIA A100 data sheet, SXM 80 GB"},
    KnownDevice{"NVIDIA A30", Platform::cuda, "sm_80", "a30", 56, 24, 933, {.fp16 = 165, .bf16 = 165, .int8 = 330}, "NVIDIA A30 data sheet"},
    KnownDevice{"NVIDIA A10", Platform::cuda, "sm_86", "a10 a10g", 72, 24, 600, {.fp16 = 125, .bf16 = 125, .int8 = 250}, "NVIDIA A10 data sheet"},
    KnownDevice{"NVIDIA A40", Platform::cuda, "sm_86", "a40", 84, 48, 696, {.fp16 = 149.7, .bf16 = 149.7, .int8 = 299.3}, "NVIDIA A40 data sheet"},
    KnownDevice{"NVIDIA RTX A6000", Platform::cuda, "sm_86", "a6000 rtx-a6000", 84, 48, 768, {.fp16 = 154.8, .bf16 = 154.8, .int8 = 309.7}, "NVIDIA Ampere GA102 architecture paper"},
    KnownDevice{"NVIDIA GeForce RTX 3090", Platform::cuda, "sm_86", "rtx-3090 3090", 82, 24, 936, {.fp16 = 71, .bf16 = 71, .int8 = 284}, "NVIDIA Ampere GA102 architecture paper"},
    KnownDevice{"NVIDIA Jetson AGX Orin", Platform::cuda, "sm_87", "orin agx-orin", 16, 64, 204.8, {.int8 = 85}, "NVIDIA Jetson AGX Orin technical brief, 64 GB"},
    KnownDevice{"NVIDIA L4", Platform::cuda, "sm_89", "l4 ada", 58, 24, 300, {.fp16 = 121, .bf16 = 121, .fp8 = 242.5, .int8 = 242.5}, "NVIDIA L4 data sheet"},
    KnownDevice{"NVIDIA L40S", Platform::cuda, "sm_89", "l40s", 142, 48, 864, {.fp16 = 362, .bf16 = 362, .fp8 = 733, .int8 = 733}, "NVIDIA L40S data sheet"},
    KnownDevice{"NVIDIA GeForce RTX 4090", Platform::cuda, "sm_89", "rtx-4090 4090", 128, 24, 1008, {.fp16 = 165.2, .bf16 = 165.2, .fp8 = 330.3, .int8 = 660.6}, "NVIDIA Ada architecture paper"},
    KnownDevice{"NVIDIA H100", Platform::cuda, "sm_90", "h100 sm_90a hopper", 132, 80, 3350, {.fp16 = 989.4, .bf16 = 989.4, .fp8 = 1978.9, .int8 = 1978.9}, "NVIDIA H100 data sheet, SXM"},
    KnownDevice{"NVIDIA H200", Platform::cuda, "sm_90", "h200", 132, 141, 4800, {.fp16 = 989.4, .bf16 = 989.4, .fp8 = 1978.9, .int8 = 1978.9}, "NVIDIA H200 data sheet, SXM"},
    KnownDevice{"NVIDIA H20", Platform::cuda, "sm_90", "h20", 78, 96, 4000, {.fp16 = 148, .bf16 = 148, .fp8 = 296, .int8 = 296}, "vendors' H20 product pages; NVIDIA publishes no data sheet"},
    KnownDevice{"NVIDIA GH200", Platform::cuda, "sm_90", "gh200", 132, 96, 4000, {.fp16 = 989.4, .bf16 = 989.4, .fp8 = 1978.9, .int8 = 1978.9}, "NVIDIA GH200 data sheet, 96 GB"},
    KnownDevice{"NVIDIA B200", Platform::cuda, "sm_100", "b200 sm_100a sm_100f blackwell", 148, 180, 8000, {.fp16 = 2250, .bf16 = 2250, .fp8 = 4500, .int8 = 4500, .fp4 = 9000}, "NVIDIA HGX B200 data sheet, an eighth of it"},
    KnownDevice{"NVIDIA GB200", Platform::cuda, "sm_100", "gb200", 148, 186, 8000, {.fp16 = 2500, .bf16 = 2500, .fp8 = 5000, .int8 = 5000, .fp4 = 10000}, "NVIDIA GB200 NVL72 data sheet, a 72nd of it"},
    KnownDevice{"NVIDIA B300", Platform::cuda, "sm_103", "b300 sm_103a sm_103f blackwell-ultra", 148, 270, 8000, {.fp16 = 2250, .bf16 = 2250, .fp8 = 4500, .fp4 = 13500}, "NVIDIA HGX B300 data sheet, an eighth of it"},
    KnownDevice{"NVIDIA GB300", Platform::cuda, "sm_103", "gb300", 152, 279, 8000, {.fp16 = 2500, .bf16 = 2500, .fp8 = 5000, .fp4 = 15000}, "NVIDIA GB300 NVL72 data sheet, a 72nd of it"},
    KnownDevice{"NVIDIA Jetson AGX Thor", Platform::cuda, "sm_110", "thor agx-thor jetson-thor sm_110a sm_110f", 20, 128, 273, {.fp8 = 517, .fp4 = 1035}, "NVIDIA Jetson T5000 data sheet"},
    KnownDevice{"NVIDIA GeForce RTX 5090", Platform::cuda, "sm_120", "rtx-5090 5090 sm_120a sm_120f", 170, 32, 1792, {.fp16 = 209.5, .bf16 = 209.5, .fp8 = 419, .int8 = 838, .fp4 = 1676}, "NVIDIA RTX Blackwell architecture paper"},
    KnownDevice{"NVIDIA RTX PRO 6000 Blackwell", Platform::cuda, "sm_120", "rtx-pro-6000 pro-6000", 188, 96, 1792, {.fp16 = 503.8, .bf16 = 503.8, .fp8 = 1007.6, .int8 = 1007.6, .fp4 = 2015.2}, "NVIDIA RTX PRO Blackwell architecture paper, Workstation Edition"},
    KnownDevice{"NVIDIA GB10", Platform::cuda, "sm_121", "gb10 dgx-spark spark sm_121a sm_121f", 48, 128, 273, {.fp4 = 500}, "NVIDIA DGX Spark data sheet"},
    KnownDevice{"AMD Instinct MI300X", Platform::rocm, "gfx942", "mi300x mi300", 304, 192, 5300, {.fp16 = 1307.4, .bf16 = 1307.4, .fp8 = 2614.9, .int8 = 2614.9}, "AMD Instinct MI300X data sheet"},
    KnownDevice{"AMD Instinct MI325X", Platform::rocm, "gfx942", "mi325x", 304, 256, 6000, {.fp16 = 1307.4, .bf16 = 1307.4, .fp8 = 2614.9, .int8 = 2614.9}, "AMD Instinct MI325X data sheet"},
    KnownDevice{"AMD Instinct MI355X", Platform::rocm, "gfx950", "mi355x mi355", 256, 288, 8000, {.fp16 = 2516.6, .bf16 = 2516.6, .fp8 = 5033.2, .int8 = 5033.2, .fp4 = 10066.3}, "AMD Instinct MI355X data sheet"},
    KnownDevice{"AMD Instinct MI350X", Platform::rocm, "gfx950", "mi350x mi350", 256, 288, 8000, {.fp16 = 2306.9, .bf16 = 2306.9, .fp8 = 4613.7, .int8 = 4613.7, .fp4 = 9227.5}, "AMD Instinct MI350X data sheet"},
    KnownDevice{"AMD Radeon RX 7900 XTX", Platform::rocm, "gfx1100", "rx-7900-xtx 7900-xtx", 96, 24, 960, {.fp16 = 122.8, .bf16 = 122.8, .int8 = 122.8}, "AMD Radeon RX 7900 XTX product page"},
    KnownDevice{"AMD Radeon RX 9060 XT", Platform::rocm, "gfx1200", "rx-9060-xt 9060-xt", 32, 16, 320, {.fp16 = 103, .bf16 = 103, .fp8 = 205, .int8 = 205}, "AMD Radeon RX 9060 XT product page"},
    KnownDevice{"AMD Radeon RX 9070 XT", Platform::rocm, "gfx1201", "rx-9070-xt 9070-xt", 64, 16, 640, {.fp16 = 195, .bf16 = 195, .fp8 = 389, .int8 = 389}, "AMD Radeon RX 9070 XT product page"},
    KnownDevice{"AMD Radeon AI PRO R9700", Platform::rocm, "gfx1201", "r9700 ai-pro-r9700", 64, 32, 640, {.fp16 = 191, .bf16 = 191, .fp8 = 383, .int8 = 383}, "AMD Radeon AI PRO R9700 product page"},
    KnownDevice{"AMD gfx1250", Platform::rocm, "gfx1250", "", 0, 0, 0, {}, ""},
    KnownDevice{"Intel Arc B580", Platform::xpu, "xe2", "xpu b580 arc-b580 battlemage", 20, 12, 456, {.int8 = 233}, "Intel Arc B580 product page"},
    KnownDevice{"Intel Data Center GPU Max 1550", Platform::xpu, "xe_hpc", "max-1550 pvc ponte-vecchio", 128, 128, 3276.8, {.fp16 = 838.9, .bf16 = 838.9, .int8 = 1677.7}, "Intel Data Center GPU Max 1550 product page"},
    KnownDevice{"x86-64 CPU with AVX2", Platform::cpu, "x86_64+avx2", "avx2 x86-avx2", 0, 0, 0, {}, ""},
    KnownDevice{"x86-64 CPU with AVX-512", Platform::cpu, "x86_64+avx512", "avx512 x86-avx512", 0, 0, 0, {}, ""},
    KnownDevice{"x86-64 CPU with AVX-512 VNNI", Platform::cpu, "x86_64+avx512_vnni", "avx512-vnni x86-avx512-vnni vnni", 0, 0, 0, {}, ""},
    KnownDevice{"x86-64 CPU with AVX-512 BF16", Platform::cpu, "x86_64+avx512_bf16", "avx512-bf16 x86-avx512-bf16", 0, 0, 0, {}, ""},
    KnownDevice{"x86-64 CPU with AMX", Platform::cpu, "x86_64+amx", "amx x86-amx", 0, 0, 0, {}, ""},
    KnownDevice{"x86-64 CPU", Platform::cpu, "x86_64", "x86-64 x86", 0, 0, 0, {}, ""},
    KnownDevice{"Arm CPU with NEON", Platform::cpu, "aarch64+neon", "neon arm arm64", 0, 0, 0, {}, ""},
    KnownDevice{"Arm CPU", Platform::cpu, "aarch64", "", 0, 0, 0, {}, ""},
};
// clang-format on

// "x86_64+avx512_bf16" -> avx512_bf16.
Isa isa_of(std::string_view arch) {
  const size_t plus = arch.find('+');
  return plus == std::string_view::npos ? Isa::portable : parse_isa(arch.substr(plus + 1)).value_or(Isa::portable);
}

DeviceProfile profile(const KnownDevice& device) {
  DeviceProfile out;
  out.name = device.name;
  out.platform = device.platform;
  out.arch = device.arch;
  out.capability = capability_of(device.arch);
  if (device.platform == Platform::cpu) out.isa = isa_of(device.arch);
  for (std::string& alias : split(device.aliases, ' ')) {
    if (!alias.empty()) out.aliases.push_back(std::move(alias));
  }
  out.cores = device.cores;
  out.memory_bytes = static_cast<uint64_t>(device.memory_gib) << 30;
  out.read_gbytes_per_s = device.read_gbytes_per_s;
  out.peak = device.peak;
  out.figures_from = device.from;
  return out;
}

}  // namespace

int capability_of(std::string_view arch) {
  const bool cuda = arch.substr(0, 3) == "sm_", rocm = arch.substr(0, 3) == "gfx";
  if (!cuda && !rocm) return 0;
  std::string_view digits = arch.substr(3);
  // gfx<major><minor><stepping>, the stepping one hexadecimal digit; sm_ may end in a letter ("sm_90a").
  if (rocm || (!digits.empty() && digits.back() >= 'a')) digits.remove_suffix(digits.empty() ? 0 : 1);
  return static_cast<int>(parse_integer(digits).value_or(0));
}

std::vector<DeviceProfile> known_devices(const DeviceProfile& host) {
  std::vector<DeviceProfile> out = {host};
  for (DeviceProfile& device : cuda_devices()) out.push_back(std::move(device));
  for (const KnownDevice& device : kDevices) out.push_back(profile(device));
  return out;
}

}  // namespace gearshift
