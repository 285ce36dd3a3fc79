#include "format/bf16.h"

#include "minifloat_checks.h"

namespace gearshift::format {
namespace {

static_assert(decode_bf16(0x3F80) == 1 && decode_bf16(0xC000) == -2 && decode_bf16(0x4049) == 3.140625f);
static_assert(encode_bf16(1.00390625f) == 0x3F80 && encode_bf16(1.01171875f) == 0x3F82, "ties to even");
static_assert(encode_bf16(std::numeric_limits<float>::max()) == 0x7F80 && encode_bf16(-0.0f) == 0x8000);

TEST(Bf16, EveryCodeAndEveryBoundary) {
  check_format({8, 7, 127, bf16_max, 0x1p-126, 0x1p-133, 2 * 127, true, 2 * 32640 - 1}, decode_bf16, encode_bf16);
  EXPECT_EQ(bf16_max, 3.38953138925153547590470800371487866880e38f);
  EXPECT_EQ(bf16_min_normal, 0x1p-126f);
  EXPECT_EQ(bf16_min_subnormal, 0x1p-133f);
}

// A signalling NaN whose payload sits in the dropped half must not become infinity.
TEST(Bf16, NanIsQuietAndKeepsItsSign) {
  EXPECT_EQ(encode_bf16(std::bit_cast<float>(0x7F800001u)), 0x7FC0);
  EXPECT_EQ(encode_bf16(std::bit_cast<float>(0xFF800001u)), 0xFFC0);
  EXPECT_EQ(encode_bf16(std::bit_cast<float>(0x7FFFFFFFu)), 0x7FFF);
  EXPECT_EQ(encode_bf16(std::bit_cast<float>(0x7FA10000u)), 0x7FE1);
}

// The short way and the general way agree.
TEST(Bf16, SameAsMinifloat) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const float value = decode_bf16(static_cast<uint16_t>(code));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(decode_minifloat<bf16_format>(code))) << code;
    } else {
      ASSERT_EQ(decode_minifloat<bf16_format>(code), value) << code;
    }
  }
  Random random;
  for (int i = 0; i < 100'000; ++i) {
    const float x = random.any_finite();
    ASSERT_EQ(encode_bf16(x), (encode_minifloat<bf16_format, Overflow::infinity>(x))) << std::hexfloat << x;
  }
}

}  // namespace
}  // namespace gearshift::format
