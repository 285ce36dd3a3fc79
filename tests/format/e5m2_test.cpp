#include "format/e5m2.h"

#include "minifloat_checks.h"

namespace gearshift::format {
namespace {

static_assert(decode_e5m2(0x7B) == 57344 && decode_e5m2(0x3C) == 1 && decode_e5m2(0x01) == 0x1p-16f);
static_assert(decode_e5m2(0x7C) == std::numeric_limits<float>::infinity() && decode_e5m2(0x7D) != decode_e5m2(0x7D));
static_assert(encode_e5m2(1e9f) == 0x7B && encode_e5m2(-1e9f) == 0xFB && encode_e5m2(1) == 0x3C);
static_assert(e5m2_table[0x40] == 2 && e5m2_format.bits() == 8);

// The encoder saturates: it never writes the two codes of infinity.
TEST(E5m2, EveryCodeAndEveryBoundary) {
  check_format({5, 2, 15, 57344, 0x1p-14, 0x1p-16, 6, false, 247}, decode_e5m2, encode_e5m2);
  EXPECT_EQ(e5m2_max, 57344);
  EXPECT_EQ(e5m2_min_normal, 0x1p-14f);
  EXPECT_EQ(e5m2_min_subnormal, 0x1p-16f);
}

TEST(E5m2, NanKeepsItsSign) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(encode_e5m2(std::copysign(nan, 1.0f)), 0x7F);
  EXPECT_EQ(encode_e5m2(std::copysign(nan, -1.0f)), 0xFF);
}

}  // namespace
}  // namespace gearshift::format
