#include "measure/host_laps.h"

#include <gtest/gtest.h>

#include <random>

#include "kernel/reference/reference.h"
#include "measure/made_up_layer.h"
#include "measure/preset_scheme.h"

namespace gearshift {
namespace {

// A clock that is interrupted in the launches with these numbers, counted from 0.
struct Interrupted {
  std::vector<double> us;
  std::vector<int> during;
  int launches = 0, chilled = 0, interruptions = 0;

  HostClock clock() {
    HostClock clock;
    clock.time_us = [this](const TimedLaunch& launch) {
      launch.launch();
      const auto number = static_cast<size_t>(launches++);
      if (std::find(during.begin(), during.end(), static_cast<int>(number)) != during.end()) ++interruptions;
      return us[number % us.size()];
    };
    clock.make_cold = [this](const PreparedLayer&, const Kernel&, int64_t) { ++chilled; };
    clock.interruptions = [this] { return interruptions; };
    return clock;
  }
};

double lap_of(Interrupted& script) {
  const auto made = make_up_layer(*preset_scheme("UNQUANTIZED"), {16}, 32, std::random_device{}(), false, DType::bf16);
  const std::vector<RaceEntry> entries = {{&reference_kernel, ""}};
  const int64_t scratch = reference_kernel.workspace_bytes(made->plan.layer, 3, 1);
  const auto lap = laps_on_host(script.clock(), {made->prepared, 0, entries, 3, DType::bf16, "eager", 1, 1, scratch});
  EXPECT_TRUE(lap.ok());
  return (*lap)(0);
}

TEST(HostLaps, AnUndisturbedLapIsRunOnce) {
  Interrupted script{{70, 50}, {}};
  EXPECT_EQ(lap_of(script), 70);
  EXPECT_EQ(script.launches, 1);
}

TEST(HostLaps, AShortLapThatWasInterruptedIsRunAgainColdly) {
  Interrupted once{{900, 50}, {0}};
  EXPECT_EQ(lap_of(once), 50);
  EXPECT_EQ(once.launches, 2);
  EXPECT_EQ(once.chilled, 2);
  Interrupted always{{900, 800, 850, 10}, {0, 1, 2, 3}};
  EXPECT_EQ(lap_of(always), 800) << "the least disturbed of a few";
  EXPECT_EQ(always.launches, 3);
}

TEST(HostLaps, ALapLongerThanATimeSliceIsTakenAsItIs) {
  Interrupted script{{20'000, 50}, {0}};
  EXPECT_EQ(lap_of(script), 20'000);
  EXPECT_EQ(script.launches, 1);
}

}  // namespace
}  // namespace gearshift
