// The judge itself: answers computed by hand, and every way that codes are stored, against a packer of the test's own.
#include "kernel/reference/reference.h"

#include <gtest/gtest.h>

#include "case_run.h"
#include "kernel/reference/decode.h"
#include "schemes.h"

namespace gearshift::testing {
namespace {

TEST(StoredWeights, EveryStorageDecodesToWhatWasWritten) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const Named& scheme : all_schemes()) {
    const MadeLayer layer(scheme, {32, 64}, 96, random());
    for (size_t part = 0; part < 2; ++part) {
      const StoredWeights stored(layer.weights, part);
      std::vector<float> codes(96), some(40), scratch(96);
      std::vector<double> row(96);
      for (int64_t n = 0; n < stored.n(); ++n) {
        stored.codes(n, 0, 96, codes.data());
        if (scheme.scheme.quantized) {
          uint8_t bytes[96];
          stored.code_row(n, bytes);
          for (int64_t k = 0; k < 96; ++k) ASSERT_EQ(bytes[k], stored.code_bits(n, k)) << scheme.name;
        }
        stored.codes(n, 13, 40, some.data());
        decode_row(stored, n, scratch.data(), row.data());
        for (int64_t k = 0; k < 96; ++k) {
          const auto at = static_cast<size_t>(k);
          ASSERT_EQ(codes[at], layer.values[part][static_cast<size_t>(n * 96 + k)])
              << scheme.name << " " << n << " " << k << " seed " << seed;
          if (k >= 13 && k < 53) {
            ASSERT_EQ(some[at - 13], codes[at]) << scheme.name;
          }
          ASSERT_NEAR(row[at], layer.weight(part, n, k), 1e-15 * std::fabs(row[at]))
              << scheme.name << " " << n << " " << k << " seed " << seed;
        }
      }
    }
  }
}

// [2 x 3] * [2 x 3]^T with a bias, small integers: exact.
TEST(Reference, ATinyFloatLayer) {
  const float w[] = {1, 2, 3, -1, 0.5f, 0};
  const float bias[] = {10, -1};
  LayerSpec spec;
  spec.n = 2;
  spec.k = 3;
  spec.bias = true;
  LayerWeights weights;
  weights.spec = &spec;
  PartWeights part;
  part.n = 2;
  part.weight = {reinterpret_cast<const uint8_t*>(w), sizeof w};
  part.weight_dtype = DType::f32;
  part.bias = {reinterpret_cast<const uint8_t*>(bias), sizeof bias};
  part.bias_dtype = DType::f32;
  weights.parts = {part};
  const float x[] = {1, 1, 1, 0, 0, 0, 2, -4, 8};
  const int64_t rows[] = {2, 0};
  double y[4], magnitude[4];
  reference_rows(weights, {x, DType::f32, 3, 3, 3}, rows, ActivationUse::as_checkpoint, y, magnitude, 2);
  EXPECT_EQ(y[0], 2 - 8 + 24 + 10);
  EXPECT_EQ(y[1], -2 - 2 - 1);
  EXPECT_EQ(y[2], 6 + 10);
  EXPECT_EQ(y[3], -0.5 - 1);
  EXPECT_EQ(magnitude[0], 2 + 8 + 24);
  EXPECT_EQ(magnitude[3], 1.5);
}

LayerSpec nvfp4_spec(int64_t n, int64_t k, bool divides) {
  LayerSpec spec;
  spec.family = Family::nvfp4_w4a4;
  spec.n = n;
  spec.k = k;
  for (const Named& named : all_schemes()) {
    if (std::string_view(named.name) == (divides ? "nvfp4 compressed-tensors" : "nvfp4 modelopt"))
      spec.scheme = named.scheme;
  }
  return spec;
}

// One group: x = 6, 3, 1, -0.3, 0 ... under gs = 448: SF = e4m3(448 * 1) = 448, codes e2m1(x) = 6, 3, 1, -0.5; w = 1,
// 2, 3, 4 times scale 2 over global 4.
TEST(Reference, ANvfp4GroupByHand) {
  LayerSpec spec = nvfp4_spec(1, 16, true);
  // e2m1 codes 2 4 5 6 are 1 2 3 4; low nibble first.
  uint8_t codes[8] = {0x42, 0x65};
  const uint8_t scale[1] = {format::encode_e4m3(2)};
  PartWeights part;
  part.n = 1;
  part.weight = codes;
  part.scale = scale;
  part.scale_dtype = DType::f8_e4m3;
  part.weight_global = 4;
  part.input_scale = 448;
  LayerWeights weights{&spec, {part}};
  const float x[16] = {6, 3, 1, -0.3f};
  const int64_t rows[] = {0};
  double y, magnitude;
  const ConstMatrix view{x, DType::f32, 1, 16, 16};
  reference_rows(weights, view, rows, ActivationUse::as_checkpoint, &y, &magnitude, 1);
  EXPECT_EQ(y, (6 * 1 + 3 * 2 + 1 * 3 - 0.5 * 4) * 2 / 4.0);
  reference_rows(weights, view, rows, ActivationUse::float16, &y, &magnitude, 1);
  EXPECT_EQ(y, (6 * 1 + 3 * 2 + 1 * 3 + static_cast<double>(-0.3f) * 4) * 2 / 4.0);
}

// The same weights by two exporters: the global scale as divisor, and its reciprocal as multiplier.
TEST(Case41, OppositeConventionsGiveTheSameOutput) {
  LayerSpec divides = nvfp4_spec(256, 256, true);
  LayerSpec multiplies = nvfp4_spec(256, 256, false);
  std::mt19937_64 random(41);
  std::vector<uint8_t> codes(256 * 128), scales(256 * 16);
  for (auto& code : codes) code = static_cast<uint8_t>(random());
  for (auto& scale : scales) scale = static_cast<uint8_t>(0x30 + random() % 32);
  PartWeights part;
  part.n = 256;
  part.weight = codes;
  part.scale = scales;
  part.scale_dtype = DType::f8_e4m3;
  part.weight_global = 1024;
  part.input_scale = 512;
  PartWeights reciprocal = part;
  reciprocal.weight_global = 1.0f / 1024;
  reciprocal.input_scale = 1.0f / 512;
  GuardedMatrix x(DType::bf16, 4, 256, 0);
  fill_activations(x, 4, 256, random);
  const int64_t rows[] = {0, 1, 2, 3};
  std::vector<double> a(4 * 256), b(4 * 256);
  reference_rows({&divides, {part}}, x.const_matrix(), rows, ActivationUse::as_checkpoint, a.data(), nullptr, 2);
  reference_rows({&multiplies, {reciprocal}}, x.const_matrix(), rows, ActivationUse::as_checkpoint, b.data(), nullptr,
                 2);
  EXPECT_EQ(a, b);
}

// Symmetric 4-bit codes 8 are zero whatever the stored zero points say.
TEST(Case44, SymmetricZeroPointsDecideThemselves) {
  for (Storage storage : {Storage::gptq_v1, Storage::gptq_v2}) {
    for (uint8_t stored : {0x77, 0x88}) {
      LayerSpec spec;
      spec.family = Family::mixed_precision;
      spec.n = 64;
      spec.k = 256;
      spec.scheme.quantized = true;
      spec.scheme.weight = {Format::uint4, storage, {Grouping::Kind::group, 1, 128}, true, DType::f32};
      const std::vector<uint8_t> codes(64 * 128, 0x88), zeros(2 * 32, stored);
      const std::vector<float> scales(2 * 64, 0.5f);
      PartWeights part;
      part.n = 64;
      part.weight = codes;
      part.zero_point = zeros;
      part.zero_point_dtype = DType::i32;
      part.scale = {reinterpret_cast<const uint8_t*>(scales.data()), scales.size() * 4};
      const std::vector<float> x(256, 1.0f);
      const int64_t rows[] = {0};
      std::vector<double> y(64, 1);
      reference_rows({&spec, {part}}, {x.data(), DType::f32, 1, 256, 256}, rows, ActivationUse::as_checkpoint, y.data(),
                     nullptr, 1);
      for (double value : y) EXPECT_EQ(value, 0);
    }
  }
}

// Group 512, asymmetric: (5 - 8) * 0.25 summed over 2048 columns.
TEST(Case05, GroupOf512) {
  LayerSpec spec;
  spec.family = Family::mixed_precision;
  spec.n = 8;
  spec.k = 2048;
  spec.scheme.quantized = true;
  spec.scheme.weight = {Format::int4, Storage::dense_bits, {Grouping::Kind::group, 1, 512}, false, DType::f32};
  const std::vector<uint8_t> codes(8 * 1024, 0x55), zeros(4 * 4, 0x88);
  const std::vector<float> scales(8 * 4, 0.25f);
  PartWeights part;
  part.n = 8;
  part.weight = codes;
  part.zero_point = zeros;
  part.zero_point_dtype = DType::i32;
  part.scale = {reinterpret_cast<const uint8_t*>(scales.data()), scales.size() * 4};
  const LayerWeights weights{&spec, {part}};
  for (int64_t m : {1, 3}) {
    for (const ListEntry& entry : builtin_registry().find(Platform::cpu, Family::mixed_precision)->entries) {
      if (refuses(*entry.kernel, spec, {}, DType::bf16)) continue;
      GuardedMatrix x(DType::bf16, m, 2048, 0), y(DType::bf16, m, 8, 1);
      for (int64_t i = 0; i < m * 2048; ++i) x.set(0, i, 1);
      Guarded packed(static_cast<size_t>(entry.kernel->layout->bytes(spec)));
      entry.kernel->layout->pack(weights, packed.data(), 2);
      Guarded workspace(static_cast<size_t>(entry.kernel->workspace_bytes(spec, m, 2)));
      entry.kernel->run({&weights,
                         packed.data(),
                         x.const_matrix(),
                         y.matrix(),
                         {workspace.data(), workspace.size()},
                         2,
                         nullptr,
                         {}});
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t n = 0; n < 8; ++n) EXPECT_EQ(y.at(i, n), -1536) << entry.kernel->name;
      }
    }
  }
}

TEST(WithinBound, EndsOfTheNumberRanges) {
  Kernel kernel;
  EXPECT_EQ(error_bound(kernel, 64, 0, 0, DType::bf16), 0);
  EXPECT_TRUE(within_bound(kernel, 64, 0, 0, 0, DType::bf16));
  EXPECT_FALSE(within_bound(kernel, 64, 0, 0, 1e-30, DType::bf16));
  EXPECT_FALSE(within_bound(kernel, 64, 1, 1, std::nan(""), DType::bf16));
  EXPECT_TRUE(within_bound(kernel, 64, 1, 1, 1 + 0x1p-8, DType::bf16));
  EXPECT_FALSE(within_bound(kernel, 64, 1, 1, 1 + 0x1p-7, DType::bf16));
  EXPECT_TRUE(within_bound(kernel, 64, 7e4, 7e4, INFINITY, DType::f16));
  EXPECT_FALSE(within_bound(kernel, 64, 7e4, 7e4, -INFINITY, DType::f16));
  EXPECT_FALSE(within_bound(kernel, 64, 7e4, 7e4, 65504, DType::f16));
  EXPECT_FALSE(within_bound(kernel, 64, 6e4, 6e4, INFINITY, DType::f16));
  EXPECT_TRUE(within_bound(kernel, 64, 1e-8, 1e-8, 0, DType::f16));
}

}  // namespace
}  // namespace gearshift::testing
