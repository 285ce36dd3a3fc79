#include "format/e2m1.h"

#include "minifloat_checks.h"

namespace gearshift::format {
namespace {

static_assert(e2m1_table ==
              std::array<float, 16>{0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6});
static_assert(encode_e2m1(5) == 0x6 && encode_e2m1(5.0001f) == 0x7 && encode_e2m1(-100) == 0xF);
static_assert(e2m1_format.bits() == 4 && !e2m1_format.has_nan());

TEST(E2m1, EveryCodeAndEveryBoundary) {
  check_format({2, 1, 1, e2m1_max, e2m1_min_normal, e2m1_min_subnormal, 0, false, 15}, decode_e2m1, encode_e2m1);
  EXPECT_EQ(e2m1_max, 6);
  EXPECT_EQ(e2m1_min_subnormal, 0.5);
}

// Thresholds as written for hardware conversions: closed where the neighbour with the even code takes the tie.
TEST(E2m1, Thresholds) {
  const float above = std::numeric_limits<float>::infinity();
  const float boundary[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const bool tie_goes_up[] = {false, true, false, true, false, true, false};
  for (uint8_t code = 0; code < 7; ++code) {
    EXPECT_EQ(encode_e2m1(std::nextafter(boundary[code], 0.0f)), code);
    EXPECT_EQ(encode_e2m1(boundary[code]), code + (tie_goes_up[code] ? 1 : 0));
    EXPECT_EQ(encode_e2m1(std::nextafter(boundary[code], above)), code + 1);
  }
}

TEST(E2m1, SignOfZeroStaysAndNanIsPlusSix) {
  EXPECT_EQ(encode_e2m1(-0.0f), 0x8);
  EXPECT_EQ(encode_e2m1(-0.25f), 0x8);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(encode_e2m1(nan), 0x7);
  EXPECT_EQ(encode_e2m1(-nan), 0x7);
}

TEST(E2m1, HighNibbleIsIgnored) {
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(decode_e2m1(static_cast<uint8_t>(code)), e2m1_table[static_cast<size_t>(code & 15)]);
  }
}

}  // namespace
}  // namespace gearshift::format
