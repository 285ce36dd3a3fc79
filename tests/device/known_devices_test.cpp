#include <gtest/gtest.h>

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
    EXPECT_FALSE(found->present) << name;
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

TEST(FindDeviceTest, ThisMachineComesFirst) {
  const auto known = known_devices(host());
  ASSERT_FALSE(known.empty());
  EXPECT_TRUE(known[0].present);
  EXPECT_EQ(known[0].name, "Test CPU 9000");
  for (size_t i = 1; i < known.size(); ++i) EXPECT_FALSE(known[i].present) << known[i].name;
}

TEST(FindDeviceTest, ADeviceThatMustBeHereAndIsNot) {
  for (const char* name : {"cuda", "CUDA", "cuda:1", "cuda:17", "rocm:0"}) {
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
