#include "format/nvfp4.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "random.h"
#include "format/values.h"

namespace gearshift::format {
namespace {

constexpr uint8_t poison = 0xAA;

using Codes = std::array<uint8_t, nvfp4_block + 1>;  // one more than a block: a guard

struct Block {
  uint8_t scale;
  Codes codes;
};

Block encode(const std::vector<float>& x, float global) {
  Block block{};
  block.codes.fill(poison);
  block.scale = nvfp4_encode(x.data(), static_cast<int>(x.size()), global, block.codes.data());
  for (size_t i = x.size(); i < block.codes.size(); ++i) EXPECT_EQ(block.codes[i], poison) << "wrote past the block";
  return block;
}

static_assert(nvfp4_range == 2688);
static_assert(nvfp4_scale(6, 1) == 0x38 && nvfp4_scale(0, 1) == 0);
static_assert(nvfp4_decode_value(0xF, 0x38, 2) == -3 && nvfp4_decode_value_modelopt(0xF, 0x38, 2) == -12);

TEST(Nvfp4, WorkedBlock) {
  const Block block = encode({0, -0.0f, 1, -2, 2.5f, 3.5f, 5, -6, 0.25f, 0.75f, 4.99f, 5.01f, -0.2f, 1.25f, 6, 3}, 1);
  EXPECT_EQ(block.scale, 0x38);
  const Codes wanted{0, 8, 2, 12, 4, 6, 6, 15, 0, 2, 6, 7, 8, 2, 7, 5, poison};
  EXPECT_EQ(block.codes, wanted);
}

// Exact arithmetic gives a tie that goes to 0x34; the product with the rounded reciprocal of 6 falls just above it.
TEST(Nvfp4, ScaleIsMultipliedByTheReciprocalOfSix) {
  EXPECT_EQ(nvfp4_scale(0.3125f, 15), 0x35);
  EXPECT_EQ(encode_e4m3(15 * 0.3125f / 6), 0x34);
}

// x * global / value is exactly the tie 1.25, x * (global / value) just above it.
TEST(Nvfp4, ElementIsMultipliedByOneFactor) {
  const float x = 0x1.2f5556p+1f;
  const float global = 0x1.b6db6ep-2f;
  EXPECT_EQ(encode_e2m1(x * nvfp4_factor(0x35, global)), 3);
  EXPECT_EQ(encode_e2m1(x * global / decode_e4m3(0x35)), 2);
}

TEST(Nvfp4, ZeroBlock) {
  const Block block = encode(std::vector<float>(16, -0.0f), 1234);
  EXPECT_EQ(block.scale, 0);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(block.codes[i], 0);
}

TEST(Nvfp4, OneOutlierTakesTheWholeRange) {
  std::vector<float> x(16, 0.01f);
  x[5] = -100;
  const float global = nvfp4_global(100);
  const Block block = encode(x, global);
  EXPECT_EQ(block.scale, 0x7E);
  EXPECT_NEAR(nvfp4_decode_value(block.codes[5], block.scale, global), -100, 1e-4);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(block.codes[i], i == 5 ? 0xF : 0);
  }
}

TEST(Nvfp4, PartialBlock) {
  for (size_t count = 1; count <= 16; ++count) {
    const Block block = encode(std::vector<float>(count, 3), 2);
    EXPECT_EQ(block.scale, encode_e4m3(1));
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(block.codes[i], 7);
  }
}

TEST(Nvfp4, VanishingBlocksAndExtremeGlobalsNeverGiveNan) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  for (const float amax : {smallest, 1e-40f, 1e-38f, 1.0f, 1e30f, largest}) {
    for (const float global : {smallest, 1e-30f, 1.0f, 1e30f, largest, nvfp4_global(amax)}) {
      const Block block = encode({amax, 0, -amax, amax / 2}, global);
      EXPECT_NE(block.scale & 0x7F, 0x7F);
      EXPECT_EQ(block.codes[1], 0) << amax << ' ' << global;
      if (block.scale == 0) {
        for (size_t i = 0; i < 4; ++i) EXPECT_EQ(block.codes[i], 0);
      } else {
        EXPECT_EQ(block.codes[2], block.codes[0] | 8) << amax << ' ' << global;
      }
    }
  }
}

TEST(Nvfp4, NonFiniteElements) {
  const Block infinite = encode({1, -infinity, 0, infinity}, 1);
  EXPECT_EQ(infinite.scale, 0x7E);
  EXPECT_EQ(infinite.codes[0], 0);
  EXPECT_EQ(infinite.codes[1], 0xF);
  EXPECT_EQ(infinite.codes[3], 0x7);
  const Block with_nan = encode({6, nan, -nan, -3}, 1);
  EXPECT_EQ(with_nan.scale, 0x38) << "NaN does not count for the scale";
  EXPECT_EQ(with_nan.codes[1], 0x7);
  EXPECT_EQ(with_nan.codes[2], 0x7);
  EXPECT_EQ(with_nan.codes[3], 0xD);
}

TEST(Nvfp4, GlobalScaleInBothDirections) {
  EXPECT_EQ(nvfp4_global(2688), 1);
  EXPECT_EQ(nvfp4_scale_2(2688), 1);
  EXPECT_EQ(nvfp4_global(0), 1);
  EXPECT_EQ(nvfp4_scale_2(0), 1);
  EXPECT_EQ(nvfp4_global(1.5f), 1792);
  EXPECT_EQ(nvfp4_global_of_input_scale(0.125f), 8);
  EXPECT_EQ(nvfp4_scale_2(std::numeric_limits<float>::denorm_min()), 1);
  EXPECT_EQ(nvfp4_global(std::numeric_limits<float>::denorm_min()), std::numeric_limits<float>::max());
  Random random;
  for (int i = 0; i < 1'000; ++i) {
    const float amax = std::ldexp(std::fabs(random.normal(1)) + 0.1f, random.between(-60, 60));
    EXPECT_NEAR(nvfp4_global(amax) * nvfp4_scale_2(amax), 1, 2e-7);
  }
}

// The scale is the nearest e4m3 of the exact quotient, and each code the nearest e2m1 under that scale, except that the
// roundings in between may decide a tie (1e-6 relative covers three of them).
TEST(Nvfp4, NearestScaleAndNearestCodes) {
  Random random;
  for (int trial = 0; trial < 20'000; ++trial) {
    const std::vector<float> x = random.block(random.between(1, 16));
    const float amax = abs_max(x.data(), static_cast<int64_t>(x.size()));
    const float tensor_amax = amax * static_cast<float>(random.between(1, 40));
    const float global = nvfp4_global(tensor_amax);
    const Block block = encode(x, global);
    const double scale = decode_e4m3(block.scale);
    const double wanted = double{global} * amax / 6;
    for (const int step : {-1, 1}) {
      const int other = block.scale + step;
      if (other < 0 || other > 0x7E) continue;
      ASSERT_LE(std::fabs(wanted - scale),
                std::fabs(wanted - decode_e4m3(static_cast<uint8_t>(other))) + 1e-6 * wanted);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const double target = double{x[i]} * global / scale;
      const double error = std::fabs(target - decode_e2m1(block.codes[i]));
      for (uint8_t other = 0; other < 16; ++other) {
        ASSERT_LE(error, std::fabs(target - decode_e2m1(other)) + 1e-6 * (1 + std::fabs(target)));
      }
      ASSERT_EQ((block.codes[i] & 8) != 0, std::signbit(x[i]));
      const double value = nvfp4_decode_value(block.codes[i], block.scale, global);
      ASSERT_NEAR(value, decode_e2m1(block.codes[i]) * scale / global, 1e-7 * std::fabs(value));
    }
  }
}

TEST(Nvfp4Modelopt, ZeroBlockHasScaleOneAndSmallBlocksTheSmallest) {
  uint8_t codes[4] = {poison, poison, poison, poison};
  const float zeros[4] = {};
  EXPECT_EQ(nvfp4_encode_modelopt(zeros, 3, 0.5f, codes), encode_e4m3(1));
  EXPECT_EQ(codes[0] | codes[1] | codes[2], 0);
  EXPECT_EQ(codes[3], poison);
  const float small[4] = {1e-9f, -1e-9f, 0, 0};
  EXPECT_EQ(nvfp4_encode_modelopt(small, 4, 0.5f, codes), 0x01) << "2^-9 even where e4m3 would round to 0";
  EXPECT_EQ(nvfp4_scale_modelopt(1e9f, 0.5f), 0x7E);
}

TEST(Nvfp4Modelopt, BothDirectionsReconstructTheSame) {
  Random random;
  for (int trial = 0; trial < 5'000; ++trial) {
    const std::vector<float> x = random.block(16);
    const float amax = abs_max(x.data(), 16);
    const float tensor_amax = amax * static_cast<float>(random.between(1, 40));
    const float scale_2 = nvfp4_scale_2(tensor_amax);
    uint8_t codes[16];
    const uint8_t scale = nvfp4_encode_modelopt(x.data(), 16, scale_2, codes);
    const double wanted = double{amax} / (6 * double{scale_2});
    ASSERT_NEAR(decode_e4m3(scale), wanted, wanted / 16 + 0x1p-10);
    for (size_t i = 0; i < 16; ++i) {
      const double step = double{decode_e4m3(scale)} * scale_2;
      const double error = std::fabs(x[i] - nvfp4_decode_value_modelopt(codes[i], scale, scale_2));
      for (uint8_t other = 0; other < 16; ++other) {
        ASSERT_LE(error, std::fabs(x[i] - decode_e2m1(other) * step) + 1e-6 * (step + std::fabs(x[i])));
      }
    }
  }
}

}  // namespace
}  // namespace gearshift::format
