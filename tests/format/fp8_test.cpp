#include "format/fp8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "random.h"
#include "format/values.h"

namespace gearshift::format {
namespace {


static_assert(fp8_scale(448) == 1 && fp8_scale(0) == 1 && fp8_scale(1.75f) == 0x1p-8f);
static_assert(fp8_token_scale(0) == 1.0f / 229376 && fp8_token_scale(448) == 1 && fp8_token_scale(896, 448) == 1);
static_assert(fp8_group_scale(0) == 1e-10f / 448 && fp8_group_scale_ue8m0(448) == 1);
static_assert(fp8_encode_value(-448, 1) == 0xFE && fp8_decode_value(0x7E, 2) == 896);

TEST(Fp8, ScaleOfNothingIsUsable) {
  EXPECT_EQ(fp8_scale(std::numeric_limits<float>::denorm_min()), 1) << "the quotient is 0 in fp32";
  EXPECT_GT(fp8_token_scale(0), 0);
  EXPECT_GT(fp8_group_scale(0), 0);
  const float zeros[3] = {0, -0.0f, 0};
  for (const float scale : {fp8_scale(0), fp8_token_scale(0), fp8_group_scale(0), fp8_group_scale_ue8m0(0)}) {
    uint8_t codes[4] = {0xAA, 0xAA, 0xAA, 0xAA};
    fp8_encode(zeros, 3, scale, codes);
    EXPECT_EQ(codes[0], 0x00);
    EXPECT_EQ(codes[1], 0x80);
    EXPECT_EQ(codes[2], 0x00);
    EXPECT_EQ(codes[3], 0xAA);
  }
}

TEST(Fp8, TokenScaleHasAFloorAndACap) {
  const float floor_amax = 1.0f / 512;
  EXPECT_EQ(fp8_token_scale(floor_amax / 2), fp8_min_token_scale);
  EXPECT_GT(fp8_token_scale(floor_amax * 2), fp8_min_token_scale);
  EXPECT_EQ(fp8_token_scale(100, 50), fp8_scale(50));
  EXPECT_EQ(fp8_token_scale(40, 50), fp8_scale(40));
  EXPECT_EQ(fp8_token_scale(40, 0), fp8_scale(40)) << "0: no cap";
  EXPECT_EQ(fp8_token_scale(40, 1e-9f), fp8_min_token_scale) << "the floor also holds under a cap";
  EXPECT_EQ(fp8_encode_value(100, fp8_token_scale(100, 50)), 0x7E);
}

TEST(Fp8, Ue8m0RoundsTheScaleUp) {
  EXPECT_EQ(fp8_group_scale_ue8m0(std::nextafter(448.0f, 449.0f)), 2);
  EXPECT_EQ(fp8_group_scale_ue8m0(std::nextafter(448.0f, 447.0f)), 1);
  EXPECT_EQ(fp8_group_scale_ue8m0(0), 0x1p-42f) << "1e-10 / 448 = 2.2e-13";
  Random random;
  for (int i = 0; i < 20'000; ++i) {
    const float amax = std::fabs(random.any_finite());
    const float exact = fp8_group_scale(amax);
    const float power = fp8_group_scale_ue8m0(amax);
    int exponent = 0;
    ASSERT_EQ(std::frexp(power, &exponent), 0.5f) << amax;
    ASSERT_GE(power, exact) << amax;
    ASSERT_LT(power / 2, exact) << amax;
  }
}

// A product with the reciprocal of the scale decides some ties differently.
TEST(Fp8, ElementIsDivided) {
  Random random;
  int different = 0;
  for (int i = 0; i < 200'000; ++i) {
    const float scale = std::fabs(random.normal(1)) + 0.01f;
    const float x = scale * (static_cast<float>(random.between(0, 15)) + 0.5f) * 0x1p-9f;  // on a tie of subnormals
    const uint8_t code = fp8_encode_value(x, scale);
    ASSERT_EQ(code, encode_e4m3(x / scale));
    if (code != encode_e4m3(x * (1 / scale))) ++different;
  }
  EXPECT_GT(different, 0) << "the order of operations shows";
}

TEST(Fp8, OneOutlierAndDenormals) {
  const float x[] = {1e-3f, -448, 1e-45f, 0x1p-140f};
  uint8_t codes[4];
  const float scale = fp8_token_scale(abs_max(x, 4));
  fp8_encode(x, 4, scale, codes);
  EXPECT_EQ(scale, 1);
  EXPECT_EQ(codes[0], 0x01) << "1e-3 is nearer 2^-9 than 0";
  EXPECT_EQ(codes[1], 0xFE);
  EXPECT_EQ(codes[2], 0);
  EXPECT_EQ(codes[3], 0);
}

TEST(Fp8, NonFiniteElements) {
  const float x[] = {nan, 448, 1};
  EXPECT_EQ(fp8_token_scale(abs_max(x, 3)), 1) << "NaN does not count for the scale";
  EXPECT_EQ(fp8_encode_value(std::copysign(nan, -1.0f), 1), 0xFF);
  EXPECT_EQ(fp8_encode_value(-infinity, 1), 0xFE) << "saturates under a stored scale";
  EXPECT_EQ(fp8_token_scale(infinity), infinity);
  EXPECT_TRUE(std::isnan(fp8_decode_value(fp8_encode_value(1, infinity), infinity)));
}

// Within half a step: 1/16 of the value, or half a subnormal step of the scale.
TEST(Fp8, RoundTrip) {
  Random random;
  for (int trial = 0; trial < 3'000; ++trial) {
    const std::vector<float> x = random.block(random.between(1, fp8_group));
    const auto count = static_cast<int64_t>(x.size());
    const float amax = abs_max(x.data(), count);
    for (const float scale :
         {fp8_scale(amax), fp8_token_scale(amax), fp8_group_scale(amax), fp8_group_scale_ue8m0(amax)}) {
      std::vector<uint8_t> codes(x.size());
      fp8_encode(x.data(), count, scale, codes.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const double bound = std::fmax(std::fabs(x[i]) / 16, double{scale} * 0x1p-10) * (1 + 1e-5);
        ASSERT_NEAR(fp8_decode_value(codes[i], scale), x[i], bound);
      }
    }
  }
}

}  // namespace
}  // namespace gearshift::format
