#include "device/limits.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gearshift {
namespace {

namespace fs = std::filesystem;

class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("gearshift_cgroup_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  CgroupLimits read(const std::string& membership) { return cgroup_limits(root_.string(), membership); }
  fs::path root_;
};

TEST_F(CgroupTest, NoFilesNoLimit) {
  const CgroupLimits limits = read("0::/\n");
  EXPECT_EQ(limits.cores, 0);
  EXPECT_EQ(limits.memory_bytes, 0U);
  EXPECT_EQ(read("").cores, 0);
  EXPECT_EQ(read("nonsense\n:\n0:\n").cores, 0);
}

TEST_F(CgroupTest, Version2TakesTheTightestOfAllAncestors) {
  put("a/b/c/cpu.max", "max 100000\n");
  put("a/b/cpu.max", "350000 100000\n");
  put("a/cpu.max", "800000 100000\n");
  put("a/memory.max", "1073741824\n");
  put("a/b/memory.max", "max\n");
  const CgroupLimits limits = read("0::/a/b/c\n");
  EXPECT_EQ(limits.cores, 4);  // 3.5 rounded up
  EXPECT_EQ(limits.memory_bytes, uint64_t{1} << 30);
}

TEST_F(CgroupTest, Version2InAContainerWhoseGroupIsNotMounted) {
  put("cpu.max", "50000 100000\n");
  EXPECT_EQ(read("0::/docker/0123\n").cores, 1);
}

TEST_F(CgroupTest, Version1) {
  put("cpu,cpuacct/box/cpu.cfs_quota_us", "200000\n");
  put("cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  put("memory/box/memory.limit_in_bytes", "2147483648\n");
  put("memory/memory.limit_in_bytes", "9223372036854771712\n");  // "none"
  const CgroupLimits limits = read("5:memory:/box\n4:cpu,cpuacct:/box\n1:name=systemd:/box\n");
  EXPECT_EQ(limits.cores, 2);
  EXPECT_EQ(limits.memory_bytes, uint64_t{2} << 30);
}

TEST_F(CgroupTest, OddContentsAreNoLimit) {
  put("cpu.max", "-5 100000\n");
  EXPECT_EQ(read("0::/\n").cores, 0);
  put("cpu.max", "100000 0\n");
  EXPECT_EQ(read("0::/\n").cores, 0);
  put("cpu.max", "99999999999999999999 1\n");
  EXPECT_EQ(read("0::/\n").cores, 0);
  put("memory.max", "lots\n");
  EXPECT_EQ(read("0::/\n").memory_bytes, 0U);
}

TEST(LimitsTest, ThisProcess) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_GT(usable_memory_bytes(), 0U);
}

}  // namespace
}  // namespace gearshift
