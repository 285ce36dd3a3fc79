#include "measure/core_waits.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace gearshift {
namespace {

TEST(CoreWaits, TwoThreadsOnOneCoreWaitForEachOther) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &before)) continue;
    CPU_SET(core, &one);
    break;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  CoreWaits waits;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) continue;
  });
  const std::vector<uint64_t> begin = waits.read_ns();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < until) continue;
  const std::vector<uint64_t> end = waits.read_ns();
  stop = true;
  other.join();
  sched_setaffinity(0, sizeof before, &before);
  if (begin.empty()) return;  // a system that does not count them
  ASSERT_EQ(begin.size(), end.size());
  uint64_t waited = 0;
  for (size_t i = 0; i < begin.size(); ++i) {
    EXPECT_GE(end[i], begin[i]);
    waited += end[i] - begin[i];
  }
  EXPECT_GT(waited, 20'000'000u) << "of 200 ms, in nanoseconds";
  EXPECT_NE(waits.read_ns().size(), end.size()) << "a thread is gone";
}

}  // namespace
}  // namespace gearshift
