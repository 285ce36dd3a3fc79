#include "format/int4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "random.h"
#include "format/values.h"

namespace gearshift::format {
namespace {


static_assert(int_min(4) == -8 && int_max(4) == 7 && int_min(8) == -128 && int_max(8) == 127 && int_min(2) == -2);
static_assert(int_symmetric_scale(7.5f, 4) == 1 && int_symmetric_scale(127.5f, 8) == 1);
static_assert(int_decode_value(-8, {0.5f, 7}) == -7.5f);

TEST(Int4, SymmetricUsesBothEnds) {
  const IntScale scale{int_symmetric_scale(7.5f, 4), 0};
  EXPECT_EQ(int_encode_value(7.5f, scale, 4), 7) << "rounds to 8, clamped";
  EXPECT_EQ(int_encode_value(-7.5f, scale, 4), -8) << "ties to even";
  EXPECT_EQ(int_encode_value(2.5f, scale, 4), 2);
  EXPECT_EQ(int_encode_value(3.5f, scale, 4), 4);
  EXPECT_EQ(int_encode_value(-0.5f, scale, 4), 0);
}

TEST(Int4, AsymmetricRangeContainsZero) {
  const IntScale above = int_asymmetric_scale({3, 15}, 4);
  EXPECT_EQ(above.scale, 1);
  EXPECT_EQ(above.zero_point, -8);
  const IntScale below = int_asymmetric_scale({-15, -3}, 4);
  EXPECT_EQ(below.scale, 1);
  EXPECT_EQ(below.zero_point, 7);
  const IntScale both = int_asymmetric_scale({-5, 10}, 4);
  EXPECT_EQ(both.scale, 1);
  EXPECT_EQ(both.zero_point, -3);
  EXPECT_EQ(int_encode_value(10, both, 4), 7);
  EXPECT_EQ(int_encode_value(-5, both, 4), -8);
  EXPECT_EQ(int_encode_value(0, both, 4), both.zero_point);
}

TEST(Int4, ZeroGroup) {
  for (int bits = 2; bits <= 8; ++bits) {
    EXPECT_EQ(int_symmetric_scale(0, bits), 1);
    const IntScale scale = int_asymmetric_scale({0, 0}, bits);
    EXPECT_EQ(scale.scale, 1);
    EXPECT_EQ(scale.zero_point, 0);
    EXPECT_EQ(int_encode_value(-0.0f, scale, bits), 0);
  }
  EXPECT_EQ(int_symmetric_scale(std::numeric_limits<float>::denorm_min(), 4), 1) << "the quotient is 0 in fp32";
}

TEST(Int4, ExtremeRangesStayFinite) {
  const float largest = std::numeric_limits<float>::max();
  const IntScale scale = int_asymmetric_scale({-largest, largest}, 4);
  EXPECT_TRUE(std::isfinite(scale.scale));
  EXPECT_EQ(int_encode_value(largest, scale, 4), 7);
  EXPECT_EQ(int_encode_value(-largest, scale, 4), -8);
}

TEST(Int4, NonFiniteElements) {
  const IntScale scale{0.5f, 3};
  EXPECT_EQ(int_encode_value(nan, scale, 4), 3);
  EXPECT_EQ(int_encode_value(infinity, scale, 4), 7);
  EXPECT_EQ(int_encode_value(-infinity, scale, 4), -8);
}

TEST(Int4, EveryCodeInBothSpellings) {
  for (int bits = 2; bits <= 8; ++bits) {
    for (int32_t q = int_min(bits); q <= int_max(bits); ++q) {
      EXPECT_EQ(int_from_offset(int_to_offset(q, bits), bits), q);
      EXPECT_EQ(int_from_twos_complement(int_to_twos_complement(q, bits), bits), q);
      EXPECT_EQ(int_from_twos_complement(int_to_twos_complement(q, bits) | 0xFFFFFF00u | (0xFFu << bits), bits), q);
      // The spellings differ in the top bit alone.
      EXPECT_EQ(int_to_offset(q, bits) ^ int_to_twos_complement(q, bits), 1 << (bits - 1));
      const IntScale scale{0.25f, 1};
      EXPECT_EQ(int_encode_value(int_decode_value(q, scale), scale, bits), q);
    }
  }
  EXPECT_EQ(int_to_offset(-8, 4), 0);
  EXPECT_EQ(int_to_offset(7, 4), 15);
  EXPECT_EQ(int_to_twos_complement(-1, 4), 15);
}

// Half a step inside the range; at the ends the clamp may cost another half, and so may rounding the zero point.
TEST(Int4, RoundTrip) {
  Random random;
  for (int trial = 0; trial < 5'000; ++trial) {
    const std::vector<float> x = random.block(32);
    const Range range = min_max(x.data(), 32);
    for (int bits = 2; bits <= 8; ++bits) {
      const IntScale symmetric{int_symmetric_scale(abs_max(x.data(), 32), bits), 0};
      const IntScale asymmetric = int_asymmetric_scale(range, bits);
      ASSERT_GE(asymmetric.zero_point, int_min(bits));
      ASSERT_LE(asymmetric.zero_point, int_max(bits));
      for (const float value : x) {
        for (const IntScale scale : {symmetric, asymmetric}) {
          const int32_t q = int_encode_value(value, scale, bits);
          ASSERT_GE(q, int_min(bits));
          ASSERT_LE(q, int_max(bits));
          const bool inside = q > int_min(bits) && q < int_max(bits);
          // Quotient and product round in fp32, each by up to 2^-24 of the value.
          const double bound = scale.scale * (inside ? 0.5 : 1.0) + 0x1p-22 * std::fabs(value);
          ASSERT_NEAR(int_decode_value(q, scale), value, bound) << bits;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gearshift::format
