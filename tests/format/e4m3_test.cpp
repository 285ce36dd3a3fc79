#include "format/e4m3.h"

#include "minifloat_checks.h"

namespace gearshift::format {
namespace {

static_assert(decode_e4m3(0x7E) == 448 && decode_e4m3(0x38) == 1 && decode_e4m3(0x01) == 0x1p-9f);
static_assert(decode_e4m3(0x08) == 0x1p-6f && decode_e4m3(0xFE) == -448 && decode_e4m3(0x7F) != decode_e4m3(0x7F));
static_assert(encode_e4m3(448) == 0x7E && encode_e4m3(464) == 0x7E && encode_e4m3(1e9f) == 0x7E);
static_assert(encode_e4m3(0x1p-10f) == 0 && encode_e4m3(0x1.8p-10f) == 1 && encode_e4m3(-0.0f) == 0x80);
static_assert(e4m3_table[0x40] == 2 && e4m3_format.bits() == 8);

TEST(E4m3, EveryCodeAndEveryBoundary) {
  check_format({4, 3, 7, 448, 0x1p-6, 0x1p-9, 2, false, 253}, decode_e4m3, encode_e4m3);
  EXPECT_EQ(e4m3_max, 448);
  EXPECT_EQ(e4m3_min_normal, 0x1p-6f);
  EXPECT_EQ(e4m3_min_subnormal, 0x1p-9f);
}

TEST(E4m3, NanKeepsItsSign) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(encode_e4m3(std::copysign(nan, 1.0f)), 0x7F);
  EXPECT_EQ(encode_e4m3(std::copysign(nan, -1.0f)), 0xFF);
}

}  // namespace
}  // namespace gearshift::format
