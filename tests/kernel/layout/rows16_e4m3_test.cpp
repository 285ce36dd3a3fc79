// The packed layouts of FP8 products with four-bit weights: nothing is lost, and what the device makes of a word is the
// code's value.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "format/e2m1.h"
#include "format/e4m3.h"
#include "kernel/case_run.h"
#include "kernel/layout/int4_rows16_e4m3.h"
#include "kernel/layout/mxfp4_rows16_e4m3.h"
#include "kernel/layout/rows16_e4m3.h"
#include "kernel/schemes.h"

namespace gearshift::testing {
namespace {

// Packed twice, over different poison and with different thread counts; both must agree.
std::vector<uint8_t> packed_bytes(const Layout& layout, const MadeLayer& layer) {
  const auto size = static_cast<size_t>(layout.bytes(layer.spec));
  Guarded first(size), second(size);
  std::memset(second.data(), 0x3C, size);
  layout.pack(layer.weights, first.data(), 1);
  layout.pack(layer.weights, second.data(), 3);
  EXPECT_EQ(std::memcmp(first.data(), second.data(), size), 0) << layout.name << ": poison shows";
  EXPECT_TRUE(first.intact() && second.intact()) << layout.name;
  return {first.data(), first.data() + size};
}

uint32_t word_at(const std::vector<uint8_t>& packed, int64_t at) {
  uint32_t word;
  std::memcpy(&word, packed.data() + at, 4);
  return word;
}
uint32_t passes_of(const std::vector<uint8_t>& packed, const LayerSpec& spec) {
  return word_at(packed, mxfp4_e4m3_passes_at(spec));
}

TEST(Rows16E4m3, EveryCodeOfAUnitHasAPlaceOfItsOwn) {
  std::set<std::pair<int64_t, int>> seen;
  for (int64_t row = 0; row < kUnitRows; ++row) {
    for (int64_t column = 0; column < kUnitColumns; ++column) {
      const E4m3Place place = e4m3_place(row, column);
      EXPECT_TRUE(place.word >= 0 && place.word < kUnitCodeBytes && place.word % 4 == 0);
      EXPECT_TRUE(seen.insert({place.word, place.number}).second);
    }
  }
}

// Scales up to 11 binades apart in the first rows, then far apart.
TEST(Mxfp4Rows16E4m3, GivesBackCodesAndScales) {
  std::mt19937_64 random(std::random_device{}());
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{1}, {16}, {17, 3}, {48, 33, 1}}) {
    for (const int64_t k : {32, 96, 128, 160, 512}) {
      for (const int apart : {12, 60}) {
        MadeLayer layer(scheme_named("mxfp4 fp8 token"), rows, k, random());
        std::vector<std::vector<uint8_t>> stored;
        for (PartWeights& part : layer.weights.parts) {
          std::vector<uint8_t>& scales = stored.emplace_back(part.scale.size());
          for (uint8_t& scale : scales) scale = static_cast<uint8_t>(128 - random() % static_cast<unsigned>(apart));
        }
        for (size_t p = 0; p < stored.size(); ++p) layer.weights.parts[p].scale = stored[p];
        const std::vector<uint8_t> packed = packed_bytes(mxfp4_rows16_e4m3, layer);
        if (apart == 12) {
          EXPECT_EQ(passes_of(packed, layer.spec), 0u);
        }
        const size_t n = static_cast<size_t>(layer.spec.n), columns = static_cast<size_t>(k);
        std::vector<uint8_t> codes(n * columns), scales(n * columns / 32);
        mxfp4_rows16_e4m3.unpack(layer.spec, packed.data(), codes.data(), scales.data());
        size_t row = 0;
        for (const PartWeights& part : layer.weights.parts) {
          for (size_t r = 0; r < static_cast<size_t>(part.n); ++r, ++row) {
            for (size_t i = 0; i < columns; ++i)
              ASSERT_EQ(codes[row * columns + i], (part.weight[(r * columns + i) / 2] >> (i % 2 * 4)) & 15);
            for (size_t g = 0; g < columns / 32; ++g)
              ASSERT_EQ(scales[row * columns / 32 + g], part.scale[r * columns / 32 + g]);
          }
        }
      }
    }
  }
}

// Blocks of zeros far below the rest do not cost a second pass; others do.
TEST(Mxfp4Rows16E4m3, OnlyBlocksWithWeightsWantPasses) {
  std::mt19937_64 random(std::random_device{}());
  MadeLayer layer(scheme_named("mxfp4 fp8 token"), {20}, 128, random());
  PartWeights& part = layer.weights.parts[0];
  std::vector<uint8_t> scales(20 * 4, 127), codes(part.weight.data(), part.weight.data() + part.weight.size());
  scales[13 * 4 + 2] = 127 - 24;
  std::fill_n(codes.begin() + 13 * 64 + 2 * 16, 16, uint8_t{0x80});  // zero, and minus zero
  part.scale = scales;
  part.weight = codes;
  EXPECT_EQ(passes_of(packed_bytes(mxfp4_rows16_e4m3, layer), layer.spec), 0u);
  codes[13 * 64 + 2 * 16 + 15] = 0x10;
  EXPECT_EQ(passes_of(packed_bytes(mxfp4_rows16_e4m3, layer), layer.spec), 2u);
}

// What the device does with a word and a scale byte (stage/prefill_e4m3.cuh), on the host.
TEST(Mxfp4Rows16E4m3, TableAndShiftGiveValues) {
  std::mt19937_64 random(std::random_device{}());
  MadeLayer layer(scheme_named("mxfp4 fp8 token"), {16}, 128, random());
  PartWeights& part = layer.weights.parts[0];
  std::vector<uint8_t> scales(16 * 4);
  for (uint8_t& scale : scales) scale = static_cast<uint8_t>(130 - random() % 12);
  part.scale = scales;
  const std::vector<uint8_t> packed = packed_bytes(mxfp4_rows16_e4m3, layer);
  const auto* record =
      reinterpret_cast<const RowRecord*>(packed.data() + rows16_records_at(layer.spec, kE4m3UnitBytes));
  for (int64_t row = 0; row < 16; ++row) {
    for (int64_t column = 0; column < 128; ++column) {
      const E4m3Place place = e4m3_place(row, column);
      const uint32_t w = word_at(packed, place.word), magnitudes = w & 0x77777777u;
      const uint32_t shift = packed[static_cast<size_t>(kUnitCodeBytes + row % 8 * 8 + row / 8 * 4 + column / 32)];
      const uint64_t table = uint64_t{shift * 0x08080808u + 0x24201C18u} << 32 | (shift * 0x08080800u + 0x14100800u);
      const uint32_t magnitude = static_cast<uint32_t>(table >> (magnitudes >> (4 * place.number) & 7) * 8) & 255;
      const uint32_t signs = place.number < 4 ? w : w << 4;
      const auto code = static_cast<uint8_t>(magnitude | (signs >> (8 * (place.number % 4)) & 0x80u));
      const int stored = part.weight[static_cast<size_t>(row * 64 + column / 2)] >> (column % 2 * 4) & 15;
      const double wanted = std::ldexp(static_cast<double>(format::decode_e2m1(static_cast<uint8_t>(stored))),
                                       scales[static_cast<size_t>(row * 4 + column / 32)] - 127);
      ASSERT_EQ(format::decode_e4m3(code) * static_cast<double>(record[row].factor), wanted) << row << " " << column;
    }
  }
}

// Codes from what the device does with a word, scales beside them.
TEST(Int4Rows16E4m3, GivesBackCodesAndScalesAndDecodesToThem) {
  std::mt19937_64 random(std::random_device{}());
  for (const char* name : {"int4 fp8 token", "int4 fp8"}) {
    for (const int64_t group : {128, 256}) {
      Named scheme = scheme_named(name);
      scheme.scheme.weight.grouping.cols = group;
      for (const auto& [rows, k] : {std::pair<std::vector<int64_t>, int64_t>{{8}, 256}, {{24, 40}, 768}, {{2}, 160}}) {
        const MadeLayer layer(scheme, rows, k, random());
        const std::vector<uint8_t> packed = packed_bytes(int4_rows16_e4m3, layer);
        const size_t n = static_cast<size_t>(layer.spec.n), columns = static_cast<size_t>(k);
        const size_t groups = static_cast<size_t>(up(k, group));
        std::vector<uint8_t> codes(n * columns), scales(n * groups * 4);
        int4_rows16_e4m3.unpack(layer.spec, packed.data(), codes.data(), scales.data());
        size_t row = 0;
        int64_t slab_at = 0;
        const int64_t slab_bytes = units_along(k) * kE4m3UnitBytes;
        for (size_t part = 0; part < rows.size(); ++part) {
          for (int64_t r = 0; r < rows[part]; ++r, ++row) {
            for (size_t i = 0; i < columns; ++i) {
              const auto column = static_cast<int64_t>(i);
              const float wanted = layer.values[part][static_cast<size_t>(r) * columns + i];
              ASSERT_EQ(static_cast<float>(codes[row * columns + i] - 8), wanted);
              float scale;
              std::memcpy(&scale, scales.data() + (row * groups + i / static_cast<size_t>(group)) * 4, 4);
              ASSERT_EQ(scale, layer.scales[part][static_cast<size_t>(r) * columns + i]);
              const E4m3Place place = e4m3_place(r % 16, column % 128);
              const int64_t unit = slab_at + r / 16 * slab_bytes + column / 128 * kE4m3UnitBytes;
              const uint32_t w = word_at(packed, unit + place.word) >> (place.number < 4 ? 0 : 4);
              const uint32_t bytes = (w >> 3 & 0x01010101u) * 0x81u + (w & 0x07070707u);
              ASSERT_EQ(format::decode_e4m3(static_cast<uint8_t>(bytes >> (8 * (place.number % 4)))) * 512, wanted);
            }
          }
          slab_at += slabs_of_part(rows[part]) * slab_bytes;
        }
        EXPECT_EQ(int4_e4m3_pre_scale_at(layer.spec) >= 0, layer.spec.scheme.pre_scale);
      }
    }
  }
}

TEST(Int4Rows16E4m3, KeepsThePreScaleOfEveryPart) {
  const MadeLayer layer(scheme_named("int4 fp8"), {32, 8}, 128, 5);
  const std::vector<uint8_t> packed = packed_bytes(int4_rows16_e4m3, layer);
  for (size_t part = 0; part < 2; ++part) {
    for (int64_t k = 0; k < 128; ++k) {
      float found;
      std::memcpy(&found,
                  packed.data() + int4_e4m3_pre_scale_at(layer.spec) + (static_cast<int64_t>(part) * 128 + k) * 4, 4);
      ASSERT_EQ(found, pre_scale_value(layer.weights.parts[part], k));
      ASSERT_GE(found, 0.5f);
    }
  }
}

}  // namespace
}  // namespace gearshift::testing
