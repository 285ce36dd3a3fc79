#include "format/minifloat_rounding.h"

#include <gtest/gtest.h>

#include <random>

#include "format/e2m1.h"
#include "format/e2m3.h"
#include "format/e3m2.h"
#include "format/e4m3.h"
#include "format/e5m2.h"

namespace gearshift::format {
namespace {

template <Minifloat F>
void check_value(uint32_t bits) {
  constexpr MinifloatRounding r = rounding_of<F>();
  const float x = std::bit_cast<float>(bits);
  const uint32_t code = encode_minifloat<F, Overflow::saturate>(x);
  ASSERT_EQ(encode_rounded(r, x), code) << "bits " << std::hex << bits;
  const float wanted = decode_minifloat<F>(code), found = round_minifloat(r, x);
  if (wanted != wanted) {
    ASSERT_NE(found, found) << "bits " << std::hex << bits;
  } else {
    ASSERT_EQ(std::bit_cast<uint32_t>(found), std::bit_cast<uint32_t>(wanted)) << "bits " << std::hex << bits;
  }
}

// Every value of 16 bits, the neighbours of every midpoint between two codes, and random bits.
template <Minifloat F>
void check_format() {
  for (uint32_t high = 0; high < 0x10000u; ++high) check_value<F>(high << 16);
  for (uint32_t code = 0; code < F.max_code; ++code) {
    const float middle = decode_minifloat<F>(code) / 2 + decode_minifloat<F>(code + 1) / 2;
    const uint32_t bits = std::bit_cast<uint32_t>(middle);
    for (const uint32_t near : {bits - 1, bits, bits + 1}) {
      check_value<F>(near);
      check_value<F>(near | 0x80000000u);
    }
  }
  std::mt19937 random(11);
  for (int i = 0; i < 2'000'000; ++i) check_value<F>(static_cast<uint32_t>(random()));
}

TEST(MinifloatRounding, HasTheBitsOfTheEncoder) {
  check_format<e2m1_format>();
  check_format<e2m3_format>();
  check_format<e3m2_format>();
  check_format<e4m3_format>();
  check_format<e5m2_format>();
}

}  // namespace
}  // namespace gearshift::format
