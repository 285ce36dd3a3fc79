#include "device/host_cpu.h"

#include <gtest/gtest.h>

#include <thread>

#include "device/cpu_features.h"

namespace gearshift {
namespace {

TEST(CpuinfoTest, TakesTheFirstModelName) {
  EXPECT_EQ(cpuinfo_model(
                "processor\t: 0\nmodel\t\t: 1\nmodel name\t:  AMD  EPYC 9B45 \nflags\t: fpu\nmodel name\t: other\n"),
            "AMD EPYC 9B45");
  EXPECT_EQ(cpuinfo_model("model name"), "");
  EXPECT_EQ(cpuinfo_model("processor\t: 0\nBogoMIPS\t: 50.00\n"), "");
  EXPECT_EQ(cpuinfo_model(""), "");
}

TEST(HostCpuTest, DescribesThisMachine) {
  const auto host = host_cpu();
  ASSERT_TRUE(host.ok());
  EXPECT_FALSE(host->name.empty());
  EXPECT_EQ(host->platform, Platform::cpu);
  EXPECT_TRUE(host->present);
  EXPECT_GE(host->cores, 1);
  EXPECT_LE(host->cores, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  EXPECT_GT(host->memory_bytes, uint64_t{1} << 20);
  EXPECT_EQ(host->isa, detect_isa());
  EXPECT_EQ(host->arch.rfind(machine_arch(), 0), 0U);
}

#if defined(__x86_64__)
TEST(HostCpuTest, AgreesWithTheCompilersOwnFeatureTest) {
  __builtin_cpu_init();
  const Isa isa = detect_isa();
  EXPECT_EQ(isa_covers(isa, Isa::avx2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(isa_covers(isa, Isa::avx512), __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"));
}
#endif

TEST(HostCpuTest, StepsDownToPortable) {
  const auto host = host_cpu("portable");
  ASSERT_TRUE(host.ok());
  EXPECT_EQ(host->isa, Isa::portable);
  EXPECT_EQ(host->arch, machine_arch());
  EXPECT_FALSE(host_cpu("fast").ok());
}

TEST(HostCpuTest, ArchNamesTheHighestLevel) {
  const auto host = host_cpu();
  ASSERT_TRUE(host.ok());
  const std::string level = host->isa == Isa::portable ? "" : "+" + std::string(name(host->isa));
  EXPECT_EQ(host->arch, std::string(machine_arch()) + level);
}

}  // namespace
}  // namespace gearshift
