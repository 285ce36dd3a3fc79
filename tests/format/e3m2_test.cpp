#include "format/e3m2.h"

#include "minifloat_checks.h"

namespace gearshift::format {
namespace {

static_assert(decode_e3m2(0x1F) == 28 && decode_e3m2(0x20) == 0 && decode_e3m2(0x01) == 0.0625);
static_assert(encode_e3m2(1e30f) == 0x1F && encode_e3m2(-1e30f) == 0x3F && encode_e3m2(1) == 0x0C);
static_assert(e3m2_table[0x3F] == -28 && e3m2_format.bits() == 6 && !e3m2_format.has_nan());

TEST(E3m2, EveryCodeAndEveryBoundary) {
  check_format({3, 2, 3, 28, 0.25, 0.0625, 0, false, 63}, decode_e3m2, encode_e3m2);
  EXPECT_EQ(e3m2_max, 28);
  EXPECT_EQ(e3m2_min_normal, 0.25);
  EXPECT_EQ(e3m2_min_subnormal, 0.0625);
}

TEST(E3m2, SignOfZeroStaysAndNanIsPlusMax) {
  EXPECT_EQ(encode_e3m2(-0.0f), 0x20);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(encode_e3m2(nan), 0x1F);
  EXPECT_EQ(encode_e3m2(-nan), 0x1F);
}

}  // namespace
}  // namespace gearshift::format
