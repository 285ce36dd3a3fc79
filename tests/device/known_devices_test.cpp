#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "gearshift/device.h"

namespace gearshift {
namespace {

DeviceProfile host() {
  DeviceProfile h;
  h.name = "Test CPU 9000";
  h.arch = "x86_64+avx2";
  h.isa = Isa::avx2;
  h.aliases = {"cpu"};
  h.present = true;
  h.cores = 2;
  return h;
}

std::string arch_of(const char* name) {
  const auto found = find_device(name, host());
  return found.ok() ? found->arch : "error: " + found.error().message();
}

TEST(FindDeviceTest, CpuIsTheHost) {
  for (const char* name : {"cpu", "CPU", "x86_64+avx2", "Test CPU 9000"}) {
    const auto found = find_device(name, host());
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_EQ(found->name, "Test CPU 9000");
    EXPECT_TRUE(found->present);
  }
}

TEST(FindDeviceTest, ArchitecturesProductsAndAliasesInAnySpelling) {
  const std::map<const char*, const char*> wanted = {{"sm_70", "sm_70"},
                                                     {"T4", "sm_75"},
                                                     {"a100", "sm_80"},
                                                     {"sm86", "sm_86"},
                                                     {"l40s", "sm_89"},
                                                     {"RTX 4090", "sm_89"},
                                                     {"SM_90", "sm_90"},
                                                     {"h200", "sm_90"},
                                                     {"H20", "sm_90"},
                                                     {"NVIDIA H100", "sm_90"},
                                                     {"b200", "sm_100"},
                                                     {"b300", "sm_103"},
                                                     {"thor", "sm_110"},
                                                     {"sm_120", "sm_120"},
                                                     {"rtx-5090", "sm_120"},
                                                     {"rtx_pro_6000", "sm_120"},
                                                     {"RTX-PRO-6000", "sm_120"},
                                                     {"gb10", "sm_121"},
                                                     {"sm_121", "sm_121"},
                                                     {"sm-121", "sm_121"},
                                                     {"gfx942", "gfx942"},
                                                     {"mi300x", "gfx942"},
                                                     {"gfx950", "gfx950"},
                                                     {"MI355X", "gfx950"},
                                                     {"gfx1100", "gfx1100"},
                                                     {"gfx1201", "gfx1201"},
                                                     {"xpu", "xe2"},
                                                     {"nvidia geforce rtx 5090", "sm_120"}};
  for (const auto& [name, arch] : wanted) {
    const auto found = find_device(name, host());
    ASSERT_TRUE(found.ok()) << name << ": " << found.error().message();
    EXPECT_EQ(found->arch, arch) << name;
    // A machine may have one of them.
    EXPECT_EQ(found->present, !cuda_devices().empty() && found->name == cuda_devices().front().name) << name;
  }
  EXPECT_EQ(find_device("h200", host())->name, "NVIDIA H200");
  EXPECT_EQ(find_device("gb10", host())->name, "NVIDIA GB10");
  EXPECT_EQ(find_device("gfx942", host())->platform, Platform::rocm);
  EXPECT_EQ(find_device("xpu", host())->platform, Platform::xpu);
}

TEST(FindDeviceTest, EveryKnownDeviceIsFoundByNameAndAlias) {
  std::set<std::string> seen;
  for (const DeviceProfile& device : known_devices(host())) {
    EXPECT_EQ(arch_of(device.name.c_str()), device.arch);
    EXPECT_EQ(find_device(device.name, host())->name, device.name);
    EXPECT_EQ(arch_of(device.arch.c_str()), device.arch);
    for (const std::string& alias : device.aliases) {
      EXPECT_EQ(find_device(alias, host())->name, device.name) << alias;
      EXPECT_TRUE(seen.insert(alias).second) << alias << " is an alias of two devices";
    }
  }
}

TEST(FindDeviceTest, CpusByFeatureLevel) {
  const std::map<const char*, Isa> wanted = {{"x86-avx2", Isa::avx2},
                                             {"AVX-512", Isa::avx512},
                                             {"avx512-vnni", Isa::avx512_vnni},
                                             {"x86_64+avx512_bf16", Isa::avx512_bf16},
                                             {"amx", Isa::amx},
                                             {"x86_64", Isa::portable},
                                             {"arm", Isa::neon},
                                             {"aarch64+neon", Isa::neon}};
  for (const auto& [name, isa] : wanted) {
    const auto found = find_device(name, host());
    ASSERT_TRUE(found.ok()) << name << ": " << found.error().message();
    EXPECT_EQ(found->isa, isa) << name;
    EXPECT_EQ(found->platform, Platform::cpu);
    EXPECT_EQ(found->capability, 0);
    EXPECT_FALSE(found->present);
  }
  EXPECT_TRUE(find_device("x86_64+avx2", host())->present) << "this machine stands before the profile of its level";
}

TEST(KnownDevicesTest, Capabilities) {
  const std::map<const char*, int> wanted = {{"v100", 70},   {"t4", 75},        {"a100", 80},     {"rtx-3090", 86},
                                             {"l4", 89},     {"h20", 90},       {"b200", 100},    {"b300", 103},
                                             {"thor", 110},  {"rtx-5090", 120}, {"gb10", 121},    {"gfx942", 94},
                                             {"gfx950", 95}, {"gfx1100", 110},  {"gfx1201", 120}, {"xpu", 0}};
  for (const auto& [name, capability] : wanted) EXPECT_EQ(find_device(name, host())->capability, capability) << name;
  EXPECT_EQ(capability_of("sm_90a"), 90);
  EXPECT_EQ(capability_of("gfx90a"), 90);
  EXPECT_EQ(capability_of("gfx1250"), 125);
  for (const char* other : {"", "sm_", "gfx", "sm_x", "x86_64+avx2", "xe2", "gfxyz1"})
    EXPECT_EQ(capability_of(other), 0) << other;
}

TEST(KnownDevicesTest, FiguresMakeSense) {
  for (const DeviceProfile& device : known_devices(host())) {
    SCOPED_TRACE(device.name);
    const bool published = device.memory_bytes > 0 && !device.present;
    EXPECT_EQ(published, !device.figures_from.empty());
    if (!published) continue;
    EXPECT_GT(device.cores, 0);
    // A board reads its whole memory in 2 ms (none does) to 1 s (unified memory of embedded parts).
    const double seconds = static_cast<double>(device.memory_bytes) / (device.read_gbytes_per_s * 1e9);
    EXPECT_GT(seconds, 0.002);
    EXPECT_LT(seconds, 1.0);
    const PeakRates& peak = device.peak;
    const double slowest = std::max(peak.fp16, peak.bf16), fastest = std::max({peak.fp8, peak.int8, peak.fp4});
    EXPECT_GT(std::max(slowest, fastest), 0);
    EXPECT_TRUE(fastest == 0 || fastest >= slowest);
    EXPECT_TRUE(peak.fp8 == 0 || device.platform != Platform::cuda || device.capability >= 89);
    EXPECT_TRUE(peak.fp4 == 0 || device.platform != Platform::cuda || device.capability >= 100);
    EXPECT_TRUE(peak.bf16 == 0 || device.platform != Platform::cuda || device.capability >= 80);
  }
}

TEST(FindDeviceTest, ARevisionThatDoesNotExist) {
  for (const char* name : {"sm_105", "sm_99", "gfx943", "x86_64+avx1024"}) {
    const auto found = find_device(name, host());
    ASSERT_FALSE(found.ok()) << name;
    EXPECT_EQ(exit_code(found.error().code), 2);
    EXPECT_NE(found.error().hint.find("did you mean"), std::string::npos) << found.error().hint;
  }
  EXPECT_NE(find_device("sm_105", host()).error().hint.find("sm_103"), std::string::npos);
  EXPECT_TRUE(find_device("sm_103", host()).ok());
}

TEST(FindDeviceTest, ThisMachineComesFirst) {
  const auto known = known_devices(host());
  ASSERT_FALSE(known.empty());
  EXPECT_TRUE(known[0].present);
  EXPECT_EQ(known[0].name, "Test CPU 9000");
  const size_t here = 1 + cuda_devices().size();
  for (size_t i = 0; i < known.size(); ++i) EXPECT_EQ(known[i].present, i < here) << known[i].name;
}

TEST(FindDeviceTest, ADeviceThatMustBeHereAndIsNot) {
  std::vector<const char*> names = {"cuda:17", "rocm:0"};
  if (cuda_devices().empty()) names.insert(names.end(), {"cuda", "CUDA", "cuda:1"});
  for (const char* name : names) {
    const auto found = find_device(name, host());
    ASSERT_FALSE(found.ok()) << name;
    EXPECT_EQ(found.error().code, ErrorCode::usage);
    EXPECT_NE(found.error().subject.find(name), std::string::npos);
    EXPECT_NE(found.error().hint.find("--device"), std::string::npos);
    EXPECT_TRUE(found.error().details.empty());
  }
}

TEST(FindDeviceTest, AnUnknownNameListsNearAndValidOnes) {
  const auto found = find_device("sm_91", host());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::usage);
  EXPECT_EQ(found.error().found, "sm_91");
  EXPECT_NE(found.error().hint.find("sm_90"), std::string::npos);
  const std::string all = join(found.error().details, "\n");
  for (const char* valid : {"sm_90", "gb10", "gfx950", "xpu", "rtx-pro-6000"})
    EXPECT_NE(all.find(valid), std::string::npos) << valid;
}

TEST(FindDeviceTest, OddNames) {
  for (const char* name :
       {"", " ", "-", "cuda:", "cuda:x", "cuda:-1", "cuda:1:2", "cuda0", "sm_", "sm_9", "\xff\xfe", "../x"}) {
    const auto found = find_device(name, host());
    ASSERT_FALSE(found.ok()) << name;
    EXPECT_EQ(found.error().code, ErrorCode::usage);
    EXPECT_EQ(found.error().message().find('\xff'), std::string::npos);
  }
}

}  // namespace
}  // namespace gearshift
