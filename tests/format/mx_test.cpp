#include "format/mx.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "random.h"
#include "format/values.h"

namespace gearshift::format {
namespace {

constexpr MxRule rules[] = {MxRule::floor, MxRule::ceil, MxRule::even};

struct NamedElement {
  const char* name;
  MxElement element;
  int codes;
};
constexpr NamedElement elements[] = {{"e2m1", mx_e2m1, 16},
                                     {"e2m3", mx_e2m3, 64},
                                     {"e3m2", mx_e3m2, 64},
                                     {"e4m3", mx_e4m3, 256},
                                     {"e5m2", mx_e5m2, 256}};

static_assert(mx_e2m1.emax() == 2 && mx_e2m3.emax() == 2 && mx_e3m2.emax() == 4);
static_assert(mx_e4m3.emax() == 8 && mx_e5m2.emax() == 15);
static_assert(mx_scale(6, MxRule::floor, mx_e2m1) == 127 && mx_scale(448, MxRule::ceil, mx_e4m3) == 127);
static_assert(mx_decode_value(0x7, 128, mx_e2m1) == 12 && mx_decode_value(0xFE, 126, mx_e4m3) == -224);

// Exponent each rule gives, minus 127, at the boundaries between binades.
TEST(Mx, ScaleByRule) {
  struct Row {
    float amax;
    int floor, ceil, even;
  };
  const auto check = [](const Row& row, const MxElement& element) {
    EXPECT_EQ(mx_scale(row.amax, MxRule::floor, element) - 127, row.floor) << row.amax;
    EXPECT_EQ(mx_scale(row.amax, MxRule::ceil, element) - 127, row.ceil) << row.amax;
    EXPECT_EQ(mx_scale(row.amax, MxRule::even, element) - 127, row.even) << row.amax;
  };
  const float above_6 = std::nextafter(6.0f, 7.0f);
  const float below_7 = std::nextafter(7.0f, 6.0f);
  const float below_8 = std::nextafter(8.0f, 7.0f);
  for (const Row& row :
       {Row{4, 0, 0, 0}, Row{6, 0, 0, 0}, Row{above_6, 0, 1, 0}, Row{below_7, 0, 1, 0}, Row{7, 0, 1, 1},
        Row{below_8, 0, 1, 1}, Row{8, 1, 1, 1}, Row{1, -2, -2, -2}, Row{0.75f, -3, -3, -3}}) {
    check(row, mx_e2m1);
  }
  const float above_448 = std::nextafter(448.0f, 449.0f);
  for (const Row& row :
       {Row{256, 0, 0, 0}, Row{447, 0, 0, 0}, Row{448, 0, 0, 1}, Row{above_448, 0, 1, 1}, Row{512, 1, 1, 1}}) {
    check(row, mx_e4m3);
  }
}

// Where the range of a block of scale 2^e ends, for each rule.
TEST(Mx, ScaledAmaxLiesWhereTheRuleSays) {
  Random random;
  for (const NamedElement& named : elements) {
    SCOPED_TRACE(named.name);
    const MxElement& element = named.element;
    const double binade = std::ldexp(1.0, element.emax());
    for (int i = 0; i < 20'000; ++i) {
      const float amax = std::fabs(random.any_finite());
      const auto scaled = [&](MxRule rule) { return std::ldexp(double{amax}, 127 - mx_scale(amax, rule, element)); };
      if (std::fabs(std::logb(amax) - element.emax()) > 126) continue;  // clamped
      ASSERT_GE(scaled(MxRule::floor), binade);
      ASSERT_LT(scaled(MxRule::floor), 2 * binade);
      ASSERT_GT(scaled(MxRule::ceil), element.max / 2);
      ASSERT_LE(scaled(MxRule::ceil), element.max);
      ASSERT_GE(scaled(MxRule::even), 0.875 * binade);
      ASSERT_LT(scaled(MxRule::even), 1.75 * binade);
    }
  }
}

TEST(Mx, ScaleClampsAndIsNeverNan) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  for (const MxRule rule : rules) {
    for (const auto& [name, element, codes] : elements) {
      EXPECT_EQ(mx_scale(0, rule, element), 0) << name;
      EXPECT_EQ(mx_scale(-0.0f, rule, element), 0) << name;
      EXPECT_EQ(mx_scale(smallest, rule, element), 0) << name;
      EXPECT_EQ(mx_scale(0x1.FFFFFCp-127f, rule, element), 0) << name;
      const int largest = mx_scale(std::numeric_limits<float>::max(), rule, element);
      EXPECT_EQ(largest, 254 - element.emax() + (rule == MxRule::floor ? 0 : 1)) << name;
      EXPECT_LT(mx_scale(infinity, rule, element), 255) << name;
    }
  }
}

TEST(Mx, WorkedBlockSaturatesOnlyWhereTheRuleLetsIt) {
  const float x[] = {7.5f, -7.5f, 1, 0.25f, -0.2f, 0};
  std::array<uint8_t, 7> codes{};
  codes.fill(0xAA);
  EXPECT_EQ(mx_encode(x, 6, MxRule::floor, mx_e2m1, codes.data()), 127);
  EXPECT_EQ(codes, (std::array<uint8_t, 7>{0x7, 0xF, 0x2, 0x0, 0x8, 0x0, 0xAA}));
  EXPECT_EQ(mx_encode(x, 6, MxRule::ceil, mx_e2m1, codes.data()), 128);
  EXPECT_EQ(codes, (std::array<uint8_t, 7>{0x6, 0xE, 0x1, 0x0, 0x8, 0x0, 0xAA}));
}

TEST(Mx, ZeroBlockAndOneOutlier) {
  for (const MxRule rule : rules) {
    for (const auto& [name, element, count] : elements) {
      SCOPED_TRACE(name);
      std::vector<float> x(32, 0.0f);
      std::vector<uint8_t> codes(32, 0xAA);
      EXPECT_EQ(mx_encode(x.data(), 32, rule, element, codes.data()), 0);
      for (const uint8_t code : codes) EXPECT_EQ(code, 0);

      x.assign(32, 1e-12f);
      x[31] = -1024;
      const uint8_t scale = mx_encode(x.data(), 32, rule, element, codes.data());
      EXPECT_EQ(mx_decode_value(codes[31], scale, element), -1024);
      for (size_t i = 0; i < 31; ++i) EXPECT_EQ(codes[i], 0);
    }
  }
}

TEST(Mx, SmallestAndLargestFloats) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  const float x[] = {smallest, -smallest, 0};
  const float wide[] = {largest, -largest, smallest};
  uint8_t codes[3];
  for (const auto& [name, element, count] : elements) {
    SCOPED_TRACE(name);
    const uint8_t scale = mx_encode(x, 3, MxRule::floor, element, codes);
    EXPECT_EQ(scale, 0);
    EXPECT_EQ(element.decode(codes[0]), element.decode(element.encode(0x1p-22f)));
    EXPECT_EQ(codes[2], 0);
    const uint8_t wide_scale = mx_encode(wide, 3, MxRule::floor, element, codes);
    EXPECT_EQ(element.decode(codes[0]), element.max);
    EXPECT_EQ(mx_decode_value(codes[1], wide_scale, element), -element.max * pow2(127 - element.emax()));
    EXPECT_EQ(codes[2], 0);
  }
}

TEST(Mx, NonFiniteElements) {
  const float x[] = {1, nan, -infinity};
  uint8_t codes[3];
  for (const auto& [name, element, count] : elements) {
    SCOPED_TRACE(name);
    mx_encode(x, 3, MxRule::floor, element, codes);
    EXPECT_EQ(element.decode(codes[2]), -element.max);
    EXPECT_EQ(codes[1], element.encode(nan));
    const uint8_t scale = mx_encode(x, 2, MxRule::floor, element, codes);
    EXPECT_EQ(mx_decode_value(codes[0], scale, element), 1) << "NaN does not count for the scale";
  }
}

// Scaling by a power of two is exact, so each code is the nearest element value of the exact quotient.
TEST(Mx, NearestCodes) {
  Random random;
  for (const auto& [name, element, count] : elements) {
    SCOPED_TRACE(name);
    for (int trial = 0; trial < 300; ++trial) {
      const std::vector<float> x = random.block(32);
      const MxRule rule = rules[random.between(0, 2)];
      uint8_t codes[32];
      const uint8_t scale = mx_encode(x.data(), 32, rule, element, codes);
      for (size_t i = 0; i < 32; ++i) {
        const double target = std::ldexp(double{x[i]}, 127 - scale);
        const double error = std::fabs(target - element.decode(codes[i]));
        for (int other = 0; other < count; ++other) {
          const double value = element.decode(static_cast<uint8_t>(other));
          if (std::isfinite(value)) {
            ASSERT_LE(error, std::fabs(target - value));
          }
        }
        if (rule == MxRule::ceil) {
          ASSERT_LE(std::fabs(target), element.max);
        }
        ASSERT_EQ(mx_decode_value(codes[i], scale, element), std::ldexp(element.decode(codes[i]), scale - 127));
      }
    }
  }
}

}  // namespace
}  // namespace gearshift::format
