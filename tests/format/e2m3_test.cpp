#include "format/e2m3.h"

#include "minifloat_checks.h"

namespace gearshift::format {
namespace {

static_assert(decode_e2m3(0x1F) == 7.5 && decode_e2m3(0x20) == 0 && decode_e2m3(0x01) == 0.125);
static_assert(encode_e2m3(1e30f) == 0x1F && encode_e2m3(-1e30f) == 0x3F && encode_e2m3(1) == 0x08);
static_assert(e2m3_table[0x3F] == -7.5 && e2m3_format.bits() == 6 && !e2m3_format.has_nan());

TEST(E2m3, EveryCodeAndEveryBoundary) {
  check_format({2, 3, 1, 7.5, 1, 0.125, 0, false, 63}, decode_e2m3, encode_e2m3);
  EXPECT_EQ(e2m3_max, 7.5);
  EXPECT_EQ(e2m3_min_normal, 1);
  EXPECT_EQ(e2m3_min_subnormal, 0.125);
}

TEST(E2m3, SignOfZeroStaysAndNanIsPlusMax) {
  EXPECT_EQ(encode_e2m3(-0.0f), 0x20);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(encode_e2m3(nan), 0x1F);
  EXPECT_EQ(encode_e2m3(-nan), 0x1F);
}

}  // namespace
}  // namespace gearshift::format
