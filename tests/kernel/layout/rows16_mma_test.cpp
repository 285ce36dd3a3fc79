// The packed layouts of CUDA kernels, which are packed on the host: nothing is lost, and every byte is written.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "format/e4m3.h"
#include "kernel/case_run.h"
#include "kernel/layout/code_rows.h"
#include "kernel/layout/e2m1_word.h"
#include "kernel/layout/int4_rows16_mma.h"
#include "kernel/layout/mxfp4_rows16_mma.h"
#include "kernel/layout/nvfp4_rows16_mma.h"
#include "kernel/layout/rows16.h"
#include "kernel/layout/scaled_tiles.h"
#include "kernel/reference/decode.h"
#include "kernel/schemes.h"

namespace gearshift::testing {
namespace {

struct Unpacked {
  std::vector<uint8_t> codes, scales;
};
// Packs twice, over different poison and with different thread counts; both must agree.
Unpacked pack_and_unpack(const Layout& layout, const MadeLayer& layer, size_t code_bytes, size_t scale_bytes) {
  const auto size = static_cast<size_t>(layout.bytes(layer.spec));
  Guarded first(size), second(size);
  std::memset(second.data(), 0x3C, size);
  layout.pack(layer.weights, first.data(), 1);
  layout.pack(layer.weights, second.data(), 3);
  EXPECT_EQ(std::memcmp(first.data(), second.data(), size), 0) << layout.name << ": poison shows";
  EXPECT_TRUE(first.intact() && second.intact()) << layout.name;
  Unpacked out{std::vector<uint8_t>(code_bytes), std::vector<uint8_t>(scale_bytes)};
  layout.unpack(layer.spec, first.data(), out.codes.data(), out.scales.data());
  return out;
}

const std::vector<std::vector<int64_t>> kPartRows = {{1}, {16}, {17, 3}, {48, 33, 1}};

TEST(Nvfp4Rows16Mma, GivesBackCodesAndScales) {
  std::mt19937_64 random(std::random_device{}());
  for (const auto& rows : kPartRows) {
    for (const int64_t k : {16, 112, 128, 144, 512}) {
      const MadeLayer layer(scheme_named("nvfp4 compressed-tensors"), rows, k, random());
      const size_t n = static_cast<size_t>(layer.spec.n), columns = static_cast<size_t>(k);
      const Unpacked out = pack_and_unpack(nvfp4_rows16_mma, layer, n * columns, n * columns / 16);
      size_t row = 0;
      for (const PartWeights& part : layer.weights.parts) {
        for (size_t r = 0; r < static_cast<size_t>(part.n); ++r, ++row) {
          for (size_t i = 0; i < columns; ++i)
            ASSERT_EQ(out.codes[row * columns + i], (part.weight[(r * columns + i) / 2] >> (i % 2 * 4)) & 15);
          for (size_t g = 0; g < columns / 16; ++g)
            ASSERT_EQ(out.scales[row * columns / 16 + g], part.scale[r * columns / 16 + g]);
        }
      }
    }
  }
}

TEST(Nvfp4Rows16Mma, ScaleBytesAreALosslessRecoding) {
  for (uint32_t code = 0; code < 0x7F; ++code) {
    const uint32_t byte = nvfp4_scale_byte(code);
    ASSERT_LE(byte, 255u);
    ASSERT_EQ(nvfp4_scale_of_byte(byte), code);
    if (code == 0) continue;
    const auto shifted = format::decode_bf16(static_cast<uint16_t>(byte << 4 | 0x7000));
    ASSERT_EQ(shifted, format::decode_e4m3(static_cast<uint8_t>(code)) * 0x1p119f) << code;
  }
}

// What the device does with a word, on the host: shifts, masks, and the value that the bits then have in bf16.
TEST(E2m1Word, ShiftsAndMasksGiveValues) {
  for (uint32_t code = 0; code < 16; ++code) {
    for (int reg = 0; reg < 4; ++reg) {
      for (int half = 0; half < 2; ++half) {
        const uint32_t w = put_e2m1(reg, half, code);
        ASSERT_EQ(get_e2m1(w, reg, half), code);
        const uint32_t fragment[4] = {w & 0x81C081C0u, (w << 3) & 0x81C081C0u,
                                      ((w << 6) & 0x01C001C0u) | ((w << 2) & 0x80008000u),
                                      ((w >> 3) & 0x01C001C0u) | ((w << 1) & 0x80008000u)};
        for (int other = 0; other < 4; ++other) {
          const auto bits = static_cast<uint16_t>(fragment[other] >> (16 * half));
          const float wanted = other == reg ? format::decode_e2m1(static_cast<uint8_t>(code)) * 0x1p-126f : 0.0f;
          ASSERT_EQ(format::decode_bf16(bits), wanted) << code << " register " << other;
        }
      }
    }
  }
}

TEST(Mxfp4Rows16Mma, GivesBackCodesAndScales) {
  std::mt19937_64 random(std::random_device{}());
  for (const auto& rows : kPartRows) {
    for (const int64_t k : {32, 96, 128, 160, 512}) {
      const MadeLayer layer(scheme_named("mxfp4"), rows, k, random());
      const size_t n = static_cast<size_t>(layer.spec.n), columns = static_cast<size_t>(k);
      const Unpacked out = pack_and_unpack(mxfp4_rows16_mma, layer, n * columns, n * columns / 32);
      size_t row = 0;
      for (const PartWeights& part : layer.weights.parts) {
        for (size_t r = 0; r < static_cast<size_t>(part.n); ++r, ++row) {
          for (size_t i = 0; i < columns; ++i)
            ASSERT_EQ(out.codes[row * columns + i], (part.weight[(r * columns + i) / 2] >> (i % 2 * 4)) & 15);
          for (size_t g = 0; g < columns / 32; ++g)
            ASSERT_EQ(out.scales[row * columns / 32 + g], part.scale[r * columns / 32 + g]);
        }
      }
    }
  }
}

// Codes, then 16-bit scales, then zero points in the meaning of the codes.
TEST(Int4Rows16Mma, GivesBackCodesScalesAndZeroPoints) {
  std::mt19937_64 random(std::random_device{}());
  for (const char* name : {"int4 packed", "awq", "gptq v1"}) {
    for (const int64_t group : {32, 64, 128, 256}) {
      Named scheme = scheme_named(name);
      scheme.scheme.weight.grouping.cols = group;
      for (const auto& [rows, k] : {std::pair<std::vector<int64_t>, int64_t>{{8}, 256}, {{24, 40}, 768}}) {
        const MadeLayer layer(scheme, rows, k, random());
        const size_t n = static_cast<size_t>(layer.spec.n), columns = static_cast<size_t>(k),
                     groups = static_cast<size_t>(k / group);
        const bool zeros = !scheme.scheme.weight.symmetric;
        const Unpacked out = pack_and_unpack(int4_rows16_mma, layer, n * columns, n * groups * (zeros ? 3 : 2));
        size_t row = 0;
        for (size_t part = 0; part < rows.size(); ++part) {
          for (size_t r = 0; r < static_cast<size_t>(rows[part]); ++r, ++row) {
            for (size_t i = 0; i < columns; ++i) {
              const size_t g = i * groups / columns;
              const int zero = zeros ? out.scales[n * groups * 2 + row * groups + g] : 8;
              ASSERT_EQ(static_cast<float>(out.codes[row * columns + i] - zero), layer.values[part][r * columns + i])
                  << name << " group " << group << " row " << row << " column " << i;
              uint16_t scale;
              std::memcpy(&scale, out.scales.data() + (row * groups + g) * 2, 2);
              const float value =
                  scheme.scheme.weight.scale == DType::f16 ? format::decode_fp16(scale) : format::decode_bf16(scale);
              ASSERT_EQ(value, layer.scales[part][r * columns + i]);
            }
          }
        }
      }
    }
  }
}

TEST(Rows16, RecordsHoldFactorBiasAndColumn) {
  std::mt19937_64 random(std::random_device{}());
  MadeLayer layer(scheme_named("nvfp4 modelopt"), {17, 3}, 64, random(), true);
  for (const RowOrder order : {RowOrder::concatenated, RowOrder::interleaved}) {
    layer.spec.row_order = order;
    std::vector<uint8_t> packed(static_cast<size_t>(nvfp4_rows16_mma.bytes(layer.spec)));
    nvfp4_rows16_mma.pack(layer.weights, packed.data(), 2);
    const auto* record =
        reinterpret_cast<const RowRecord*>(packed.data() + rows16_records_at(layer.spec, kNvfp4UnitBytes));
    for (size_t part = 0, first = 0; part < 2; first += part == 0 ? 32 : 16, ++part) {
      const int64_t n = layer.weights.parts[part].n;
      for (int64_t r = 0; r < slabs_of_part(n) * kUnitRows; ++r) {
        const RowRecord& found = record[first + static_cast<size_t>(r)];
        ASSERT_EQ(found.column, r < n ? output_column(layer.weights, part, r) : -1);
        if (r >= n) continue;
        ASSERT_EQ(found.bias, static_cast<float>(bias_value(layer.weights.parts[part], r)));
        ASSERT_FLOAT_EQ(found.factor, layer.weights.parts[part].weight_global * 128);
      }
    }
  }
}

// Codes and scales of every scheme: what is unpacked, times its scale, is the weight.
TEST(CodeRows, HoldsEveryScheme) {
  std::mt19937_64 random(std::random_device{}());
  for (const Named& scheme : all_schemes()) {
    if (!scheme.scheme.quantized || scheme.scheme.weight.act_order) continue;
    const int64_t n = up(24, scheme.n_multiple) * scheme.n_multiple, k = up(200, scheme.k_multiple) * scheme.k_multiple;
    const MadeLayer layer(scheme, {n, n}, k, random(), true);
    const CodeRows rows = code_rows_of(layer.spec);
    const Unpacked out =
        pack_and_unpack(code_rows, layer, static_cast<size_t>(2 * n * k), static_cast<size_t>(2 * n * rows.groups * 4));
    const Format format = scheme.scheme.weight.format;
    if (format < Format::int2 || !scheme.scheme.weight.symmetric) continue;
    for (int64_t r = 0; r < 2 * n; ++r) {
      for (int64_t c = 0; c < k; ++c) {
        const auto at = static_cast<size_t>(r % n * k + c);
        ASSERT_EQ(static_cast<float>(static_cast<int8_t>(out.codes[static_cast<size_t>(r * k + c)])),
                  layer.values[static_cast<size_t>(r / n)][at])
            << scheme.name;
        float scale;
        const Grouping& grouping = scheme.scheme.weight.grouping;
        const int64_t group = grouping.kind == Grouping::Kind::group ? c / grouping.cols : 0;
        std::memcpy(&scale, out.scales.data() + (r * rows.groups + group) * 4, 4);
        ASSERT_EQ(scale, layer.scales[static_cast<size_t>(r / n)][at]) << scheme.name;
      }
    }
  }
}

// Codes and scale bytes come back as they were stored; every byte of a tile that no scale has is zero.
TEST(ScaledTiles, HoldCodesAndScalesAsStored) {
  std::mt19937_64 random(std::random_device{}());
  for (const Named& scheme : all_schemes()) {
    const bool nvfp4 = scheme.family == Family::nvfp4_w4a4;
    if (!nvfp4 && scheme.name != std::string_view("mxfp8")) continue;
    const int64_t n = 136, k = 288, groups = k / scheme.scheme.weight.grouping.cols;
    const MadeLayer layer(scheme, {n, 24}, k, random(), true);
    const ScaledTiles at = scaled_tiles_of(layer.spec);
    EXPECT_EQ(at.bytes, scaled_tiles.bytes(layer.spec));
    EXPECT_GE(at.columns, k);
    const Unpacked out =
        pack_and_unpack(scaled_tiles, layer, static_cast<size_t>((n + 24) * k), static_cast<size_t>((n + 24) * groups));
    size_t code = 0, scale = 0;
    for (const PartWeights& part : layer.weights.parts) {
      const StoredWeights stored(layer.weights, static_cast<size_t>(&part - layer.weights.parts.data()));
      for (int64_t r = 0; r < part.n; ++r) {
        for (int64_t c = 0; c < k; ++c) ASSERT_EQ(out.codes[code++], stored.code_bits(r, c)) << scheme.name;
        for (int64_t g = 0; g < groups; ++g)
          ASSERT_EQ(out.scales[scale++], part.scale[static_cast<size_t>(stored.scale_index(r, g))]) << scheme.name;
      }
    }
  }
}

// Columns sorted by group come back in their own order.
TEST(Int4Rows16Mma, SortsColumnsOfActOrder) {
  std::mt19937_64 random(std::random_device{}());
  for (const Named& scheme : all_schemes()) {
    const WeightScheme& weight = scheme.scheme.weight;
    if (!weight.act_order || bits(weight.format) != 4) continue;
    const int64_t n = 40, k = 224, groups = k / weight.grouping.cols;
    const MadeLayer layer(scheme, {n, n}, k, random());
    const int64_t at = int4_column_order_at(layer.spec);
    EXPECT_EQ(at + 2 * k * 4, int4_rows16_mma.bytes(layer.spec));
    const Unpacked out = pack_and_unpack(int4_rows16_mma, layer, static_cast<size_t>(2 * n * k),
                                         static_cast<size_t>(2 * n * groups * 2));
    const int shift = weight.format == Format::int4 ? 8 : 0;
    for (int64_t r = 0; r < 2 * n; ++r) {
      const StoredWeights stored(layer.weights, static_cast<size_t>(r / n));
      for (int64_t c = 0; c < k; ++c) {
        float value;
        stored.codes(r % n, c, 1, &value);
        const int zero = stored.zero_point(r % n, stored.group_of(c));
        ASSERT_EQ(out.codes[static_cast<size_t>(r * k + c)], static_cast<int>(value) + zero + shift) << scheme.name;
      }
    }
  }
}

}  // namespace
}  // namespace gearshift::testing
