#include "format/range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "random.h"
#include "format/values.h"

namespace gearshift::format {
namespace {


static_assert(round_even(0.5f) == 0 && round_even(1.5f) == 2 && round_even(-2.5f) == -2 && round_even(-3.5f) == -4);
static_assert(round_to_int(-0.5f) == 0 && round_to_int(126.5f) == 126 && round_to_int(127.5f) == 128);

TEST(Range, AbsMaxPassesOverNanAndKeepsInfinity) {
  const float x[] = {1, -3, nan, 2};
  EXPECT_EQ(abs_max(x, 4), 3);
  EXPECT_EQ(abs_max(x, 1), 1);
  EXPECT_EQ(abs_max(x, 0), 0);
  const float only_nan[] = {nan, -nan};
  EXPECT_EQ(abs_max(only_nan, 2), 0);
  const float wide[] = {1, -infinity};
  EXPECT_EQ(abs_max(wide, 2), infinity);
  const float tiny[] = {-0.0f, -0x1p-149f};
  EXPECT_EQ(abs_max(tiny, 2), 0x1p-149f);
}

TEST(Range, MinMaxNeedNotContainZero) {
  const float x[] = {nan, 5, 3, 4, nan};
  EXPECT_EQ(min_max(x, 5).min, 3);
  EXPECT_EQ(min_max(x, 5).max, 5);
  EXPECT_EQ(min_max(x, 1).min, 0);
  EXPECT_EQ(min_max(x, 1).max, 0);
  const float below[] = {-2, -7};
  EXPECT_EQ(min_max(below, 2).min, -7);
  EXPECT_EQ(min_max(below, 2).max, -2);
}

TEST(Range, RoundEvenIsNearbyint) {
  for (int halves = -2'000; halves <= 2'000; ++halves) {
    const float x = static_cast<float>(halves) / 2;
    for (const float beside : {std::nextafter(x, -infinity), x, std::nextafter(x, infinity)}) {
      ASSERT_EQ(round_even(beside), std::nearbyint(beside)) << std::hexfloat << beside;
    }
  }
  for (const float x : {0x1p22f, 0x1p22f + 0.5f, 0x1p23f - 0.5f, 0x1p23f, 0x1p23f + 1, 0x1p24f, 0x1p100f, infinity}) {
    EXPECT_EQ(round_even(x), std::nearbyint(x)) << std::hexfloat << x;
    EXPECT_EQ(round_even(-x), std::nearbyint(-x)) << std::hexfloat << -x;
  }
  Random random;
  for (int i = 0; i < 100'000; ++i) {
    const float x = random.any_finite();
    ASSERT_EQ(round_even(x), std::nearbyint(x)) << std::hexfloat << x;
  }
}

TEST(Range, RoundToIntSaturatesAndNanIsZero) {
  EXPECT_EQ(round_to_int(nan), 0);
  EXPECT_EQ(round_to_int(infinity), INT32_MAX);
  EXPECT_EQ(round_to_int(-infinity), INT32_MIN);
  EXPECT_EQ(round_to_int(0x1p31f), INT32_MAX);
  EXPECT_EQ(round_to_int(-0x1p31f), INT32_MIN);
  EXPECT_EQ(round_to_int(std::nextafter(0x1p31f, 0.0f)), 2147483520);
  EXPECT_EQ(round_to_int(-0x1.8p31f), INT32_MIN);
}

TEST(Range, ClampInt) {
  EXPECT_EQ(clamp_int(int64_t{INT32_MAX} + 5, -128, 127), 127);
  EXPECT_EQ(clamp_int(int64_t{INT32_MIN} - 5, -128, 127), -128);
  EXPECT_EQ(clamp_int(-7, -8, 7), -7);
}

}  // namespace
}  // namespace gearshift::format
