#include "format/e8m0.h"

#include <gtest/gtest.h>

#include <cmath>

#include "random.h"

namespace gearshift::format {
namespace {

static_assert(decode_e8m0(127) == 1 && decode_e8m0(0) == 0x1p-127f && decode_e8m0(0xFE) == 0x1p127f);
static_assert(decode_e8m0(0xFF) != decode_e8m0(0xFF), "0xFF is NaN");
static_assert(encode_e8m0_exponent(0) == 127 && encode_e8m0_exponent(128) == 0xFE && encode_e8m0_exponent(-128) == 0);

TEST(E8m0, EveryCode) {
  for (int code = 0; code < 255; ++code) {
    const float value = decode_e8m0(static_cast<uint8_t>(code));
    EXPECT_EQ(value, std::ldexp(1.0, code - 127)) << code;
    EXPECT_EQ(value, e8m0_table[static_cast<size_t>(code)]) << code;
    EXPECT_EQ(encode_e8m0_exponent(floor_log2(value)), code);
    EXPECT_EQ(encode_e8m0_exponent(ceil_log2(value)), code);
  }
  EXPECT_TRUE(std::isnan(e8m0_table[0xFF]));
}

TEST(E8m0, ExponentsOutsideClampAndNeverGiveNan) {
  for (const int exponent : {-1'000'000, -149, -128, -127}) EXPECT_EQ(encode_e8m0_exponent(exponent), 0) << exponent;
  for (const int exponent : {127, 128, 129, 1'000'000}) EXPECT_EQ(encode_e8m0_exponent(exponent), 0xFE) << exponent;
}

TEST(E8m0, Pow2CoversEveryFloatExponent) {
  for (int exponent = -149; exponent <= 127; ++exponent) {
    EXPECT_EQ(pow2(exponent), std::ldexp(1.0f, exponent)) << exponent;
  }
}

TEST(E8m0, LogarithmsBesidePowersOfTwo) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (int exponent = -148; exponent <= 127; ++exponent) {
    const float power = std::ldexp(1.0f, exponent);
    EXPECT_EQ(floor_log2(power), exponent);
    EXPECT_EQ(ceil_log2(power), exponent);
    EXPECT_EQ(floor_log2(std::nextafter(power, 0.0f)), exponent - 1);
    EXPECT_EQ(ceil_log2(std::nextafter(power, 0.0f)), exponent > -148 ? exponent : exponent - 1);
    EXPECT_EQ(floor_log2(std::nextafter(power, infinity)), exponent);
    EXPECT_EQ(ceil_log2(std::nextafter(power, infinity)), exponent + 1);
  }
  EXPECT_EQ(ceil_log2(std::numeric_limits<float>::max()), 128);
  EXPECT_EQ(floor_log2(infinity), 128);
}

TEST(E8m0, LogarithmsOfAnyFloat) {
  Random random;
  for (int i = 0; i < 100'000; ++i) {
    const float x = std::fabs(random.any_finite());
    if (x == 0) continue;
    ASSERT_EQ(floor_log2(x), std::ilogb(x)) << std::hexfloat << x;
    ASSERT_LE(x, std::ldexp(1.0, ceil_log2(x))) << std::hexfloat << x;
    ASSERT_GT(x, std::ldexp(1.0, ceil_log2(x) - 1)) << std::hexfloat << x;
  }
}

}  // namespace
}  // namespace gearshift::format
