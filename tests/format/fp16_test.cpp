#include "format/fp16.h"

#include "minifloat_checks.h"

namespace gearshift::format {
namespace {

static_assert(decode_fp16(0x3C00) == 1 && decode_fp16(0xC000) == -2 && decode_fp16(0x7BFF) == 65504);
static_assert(decode_fp16(0x0001) == 0x1p-24f && decode_fp16(0x0400) == 0x1p-14f && decode_fp16(0x3555) == 0x1.554p-2f);
static_assert(encode_fp16(65519.996f) == 0x7BFF && encode_fp16(65520) == 0x7C00 && encode_fp16(-1e6f) == 0xFC00);

TEST(Fp16, EveryCodeAndEveryBoundary) {
  check_format({5, 10, 15, 65504, 0x1p-14, 0x1p-24, 2 * 1023, true, 2 * 31744 - 1}, decode_fp16, encode_fp16);
  EXPECT_EQ(fp16_max, 65504);
  EXPECT_EQ(fp16_min_normal, 0x1p-14f);
  EXPECT_EQ(fp16_min_subnormal, 0x1p-24f);
}

TEST(Fp16, NanIsQuietAndKeepsItsSign) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(encode_fp16(std::copysign(nan, 1.0f)), 0x7E00);
  EXPECT_EQ(encode_fp16(std::copysign(nan, -1.0f)), 0xFE00);
}

}  // namespace
}  // namespace gearshift::format
