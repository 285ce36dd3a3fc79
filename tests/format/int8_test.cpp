#include "format/int8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "random.h"
#include "format/values.h"

namespace gearshift::format {
namespace {


static_assert(int8_encode_value(0.75f, {0.5f, 0}) == 2 && int8_encode_value(-1e9f, {0.5f, 3}) == -128);
static_assert(int8_asymmetric_scale({-1, 254}).scale == 1 && int8_asymmetric_scale({-1, 254}).zero_point == -127);

TEST(Int8, DynamicSymmetric) {
  const float x[] = {127, -127, 0.5f, 1.5f, -2.5f, 0};
  std::vector<int8_t> q(7, 99);
  EXPECT_EQ(int8_encode_dynamic(x, 6, q.data()), 1);
  EXPECT_EQ(q, (std::vector<int8_t>{127, -127, 0, 2, -2, 0, 99}));
}

// The quotient by the scale would be 4.
TEST(Int8, ElementIsMultipliedByTheInverse) {
  const float x[] = {0.375f, 0x1.52a54ap-7f};
  int8_t q[2];
  const float scale = int8_encode_dynamic(x, 2, q);
  EXPECT_EQ(q[1], 3);
  EXPECT_EQ(round_to_int(x[1] / scale), 4);
}

TEST(Int8, ZeroRow) {
  const float x[3] = {0, -0.0f, 0};
  int8_t q[3] = {99, 99, 99};
  EXPECT_EQ(int8_encode_dynamic(x, 3, q), 0);
  for (const int8_t code : q) EXPECT_EQ(code, 0);
  q[0] = q[1] = q[2] = 99;
  const IntScale scale = int8_encode_dynamic_asymmetric(x, 3, q);
  EXPECT_EQ(scale.scale, 0);
  EXPECT_EQ(scale.zero_point, 0);
  for (const int8_t code : q) EXPECT_EQ(code, 0);
}

TEST(Int8, DenormalRows) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float x[3] = {smallest, -smallest, 0};
  int8_t q[3];
  EXPECT_EQ(int8_encode_dynamic(x, 3, q), 0) << "amax / 127 is 0 in fp32";
  EXPECT_EQ(q[2], 0) << "an infinite inverse must not turn 0 into NaN";
  EXPECT_EQ(int8_encode_dynamic_asymmetric(x, 3, q).scale, 0);
  const float larger[3] = {0x1p-130f, -0x1p-131f, 0};
  const float scale = int8_encode_dynamic(larger, 3, q);
  EXPECT_NEAR(q[0] * double{scale}, 0x1p-130, 0x1p-136);
}

TEST(Int8, DynamicAsymmetric) {
  const float x[] = {-1, 254, 0, 0.5f};
  int8_t q[4];
  const IntScale scale = int8_encode_dynamic_asymmetric(x, 4, q);
  EXPECT_EQ(scale.scale, 1);
  EXPECT_EQ(scale.zero_point, -127);
  EXPECT_EQ(q[0], -128);
  EXPECT_EQ(q[1], 127);
  EXPECT_EQ(q[2], -127) << "zero is exact";
  EXPECT_EQ(q[3], -127) << "rounded before the zero point is added";
}

// The range of a row far from zero is its own: the zero point leaves the range of int8.
TEST(Int8, RowWithoutZero) {
  const float x[] = {10, 10.5f, 11};
  int8_t q[3];
  const IntScale scale = int8_encode_dynamic_asymmetric(x, 3, q);
  EXPECT_EQ(scale.scale, 1.0f / 255);
  EXPECT_EQ(scale.zero_point, -128 - 2550);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(int_decode_value(q[i], scale), x[i], 0.5 / 255 + 1e-5);
}

TEST(Int8, ConstantAndNearlyConstantRows) {
  const float near = std::nextafter(1e6f, 2e6f);
  for (const float value : {3.0f, -3.0f, 1e6f, -1e-20f}) {
    const float x[] = {value, value};
    int8_t q[2];
    const IntScale scale = int8_encode_dynamic_asymmetric(x, 2, q);
    EXPECT_NEAR(int_decode_value(q[0], scale), value, 1e-6 * std::fabs(value));
  }
  const float x[] = {1e6f, near};
  int8_t q[2];
  const IntScale scale = int8_encode_dynamic_asymmetric(x, 2, q);
  EXPECT_NEAR(int_decode_value(q[0], scale), 1e6, 2000);
  EXPECT_NEAR(int_decode_value(q[1], scale), 1e6, 2000);
}

TEST(Int8, ExtremeRangesStayFinite) {
  const float largest = std::numeric_limits<float>::max();
  const float x[] = {-largest, largest, 0};
  int8_t q[3];
  const IntScale scale = int8_encode_dynamic_asymmetric(x, 3, q);
  EXPECT_TRUE(std::isfinite(scale.scale));
  EXPECT_EQ(q[0], -128);
  EXPECT_EQ(q[1], 127);
  EXPECT_EQ(int8_encode_dynamic(x, 3, q), largest / 127);
  EXPECT_EQ(q[0], -127);
}

TEST(Int8, StaticScale) {
  EXPECT_EQ(int8_encode_value(1.25f, {0.5f, 0}), 2) << "2.5 to even";
  EXPECT_EQ(int8_encode_value(1.25f, {0.5f, 1}), 3) << "rounded before the zero point is added";
  EXPECT_EQ(int8_encode_value(1000, {0.5f, 0}), 127);
  EXPECT_EQ(int8_encode_value(1000, {0.5f, -3000}), -128);
  EXPECT_EQ(int8_encode_value(-1000, {0.5f, 2000}), 0) << "saturates after the zero point is added";
}

TEST(Int8, NonFiniteElements) {
  const float x[] = {127, nan, -1};
  int8_t q[3];
  EXPECT_EQ(int8_encode_dynamic(x, 3, q), 1) << "NaN does not count for the scale";
  EXPECT_EQ(q[1], 0);
  EXPECT_EQ(int8_encode_value(nan, {1, 5}), 5);
  EXPECT_EQ(int8_encode_value(infinity, {1, 5}), 127);
  EXPECT_EQ(int8_encode_value(-infinity, {1, 5}), -128);
  const float wide[] = {infinity, 1};
  EXPECT_EQ(int8_encode_dynamic(wide, 2, q), infinity);
}

TEST(Int8, RoundTrip) {
  Random random;
  for (int trial = 0; trial < 3'000; ++trial) {
    std::vector<float> x = random.block(random.between(2, 64));
    const auto count = static_cast<int64_t>(x.size());
    if (trial % 3 == 0) {
      const float shift = 20 * abs_max(x.data(), count);
      for (float& value : x) value += shift;
    }
    std::vector<int8_t> q(x.size());
    const float amax = abs_max(x.data(), count);
    const float scale = int8_encode_dynamic(x.data(), count, q.data());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(q[i] * scale, x[i], 0.5 * scale + 1e-6 * amax);
    const IntScale asymmetric = int8_encode_dynamic_asymmetric(x.data(), count, q.data());
    for (size_t i = 0; i < x.size(); ++i) {
      // A rounded zero point may push one end of the range out by half a step.
      ASSERT_NEAR(int_decode_value(q[i], asymmetric), x[i], asymmetric.scale + 1e-5 * amax);
    }
  }
}

}  // namespace
}  // namespace gearshift::format
