#include "measure/host_laps.h"

#include <gtest/gtest.h>

#include <random>

#include "kernel/reference/reference.h"
#include "measure/made_up_layer.h"
#include "measure/preset_scheme.h"

namespace gearshift {
namespace {

// A clock that says these times, one a launch.
struct Script {
  std::vector<LapTime> laps;
  int launches = 0, chilled = 0;

  HostClock clock() {
    HostClock clock;
    clock.time = [this](const TimedLaunch& launch) {
      launch.launch();
      return laps.at(static_cast<size_t>(launches++));
    };
    clock.make_cold = [this](const PreparedLayer&, const Kernel&, int64_t) { ++chilled; };
    return clock;
  }
};

double lap_of(Script& script) {
  const auto made = make_up_layer(*preset_scheme("UNQUANTIZED"), {16}, 32, std::random_device{}(), false, DType::bf16);
  const std::vector<RaceEntry> entries = {{&reference_kernel, ""}};
  const int64_t scratch = reference_kernel.workspace_bytes(made->plan.layer, 3, 1);
  const auto lap = laps_on_host(script.clock(), {made->prepared, 0, entries, 3, DType::bf16, "eager", 1, 1, scratch});
  EXPECT_TRUE(lap.ok());
  return (*lap)(0);
}

TEST(HostLaps, AnUndisturbedLapIsRunOnce) {
  Script script{{{70, 0}}};
  EXPECT_EQ(lap_of(script), 70);
  EXPECT_EQ(script.launches, 1);
}

TEST(HostLaps, WhatThreadsWaitedForACoreIsNotTheKernels) {
  Script script{{{20'000, 8'000}}};
  EXPECT_EQ(lap_of(script), 12'000);
  EXPECT_EQ(script.launches, 1);
}

TEST(HostLaps, ALapThatWaitedLongerThanItRanIsRunAgainColdly) {
  Script once{{{16'060, 16'000}, {50, 1}}};
  EXPECT_EQ(lap_of(once), 49);
  EXPECT_EQ(once.launches, 2);
  EXPECT_EQ(once.chilled, 2);
  Script always{{{16'090, 16'000}, {8'070, 8'000}, {8'080, 8'000}, {1, 0}}};
  EXPECT_EQ(lap_of(always), 70) << "the least disturbed of a few";
  EXPECT_EQ(always.launches, 3);
  Script impossible{{{100, 200}, {100, 200}, {100, 200}}};
  EXPECT_GT(lap_of(impossible), 0);
}

}  // namespace
}  // namespace gearshift
