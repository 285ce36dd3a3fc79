// Round trips of the packed layout, for every scheme that its kernels take.
#include "kernel/layout/nibbles_rows16.h"

#include <gtest/gtest.h>

#include "kernel/case_run.h"
#include "kernel/cpu/kernels.h"
#include "kernel/reference/decode.h"
#include "kernel/schemes.h"

namespace gearshift::testing {
namespace {

bool takes(const Named& scheme) {
  const WeightScheme& weight = scheme.scheme.weight;
  return scheme.scheme.quantized && bits(weight.format) == 4;
}

TEST(NibblesRows16, PacksEveryByteAndUnpacksTheSame) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  int schemes = 0;
  for (const Named& scheme : all_schemes()) {
    if (!takes(scheme)) continue;
    ++schemes;
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{16}, {24, 8}, {48, 40, 8}}) {
      for (int64_t k : {16, 48, 64, 128, 256}) {
        const MadeLayer layer(scheme, rows, up(k, scheme.k_multiple) * scheme.k_multiple, random());
        const int64_t columns = layer.spec.k;
        const auto size = static_cast<size_t>(nibbles_rows16.bytes(layer.spec));
        Guarded first(size), second(size);
        std::memset(second.data(), 0x3C, size);
        nibbles_rows16.pack(layer.weights, first.data(), 1);
        nibbles_rows16.pack(layer.weights, second.data(), 3);
        ASSERT_EQ(std::memcmp(first.data(), second.data(), size), 0) << "poison shows; seed " << seed;
        ASSERT_TRUE(first.intact() && second.intact());
        const NibblesRows16 at(layer.spec);
        std::vector<uint8_t> codes(static_cast<size_t>(layer.spec.n * columns)),
            scales(static_cast<size_t>(layer.spec.n * at.groups * at.scale_bytes));
        nibbles_rows16.unpack(layer.spec, first.data(), codes.data(), scales.data());
        const uint8_t* code = codes.data();
        const uint8_t* scale = scales.data();
        for (size_t part = 0; part < rows.size(); ++part) {
          const StoredWeights stored(layer.weights, part);
          const uint8_t* stored_scales = layer.weights.parts[part].scale.data();
          for (int64_t n = 0; n < rows[part]; ++n) {
            for (int64_t i = 0; i < columns; ++i) {
              ASSERT_EQ(*code++, stored.code_bits(n, i)) << scheme.name << " " << n << " " << i << " seed " << seed;
            }
            for (int64_t g = 0; g < at.groups; ++g, scale += at.scale_bytes) {
              ASSERT_EQ(std::memcmp(scale, stored_scales + stored.scale_index(n, g) * at.scale_bytes,
                                    static_cast<size_t>(at.scale_bytes)),
                        0)
                  << scheme.name << " " << n << " group " << g << " seed " << seed;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(schemes, 10);
}

// An index may leave groups unevenly filled; the layout says so, and the kernel's answer is right all the same.
TEST(NibblesRows16, AnUnevenIndexIsServedWithoutPanels) {
  std::mt19937_64 random(7);
  for (const Named& scheme : all_schemes()) {
    if (!takes(scheme) || !scheme.scheme.weight.act_order) continue;
    MadeLayer layer(scheme, {32, 16}, 128, random());
    std::vector<uint8_t> index(layer.weights.parts[1].group_index.begin(), layer.weights.parts[1].group_index.end());
    for (size_t i = 0; i < 4 * 40; i += 4) index[i] = 2;  // group 2 gets more than its 32 columns
    layer.weights.parts[1].group_index = index;
    GuardedMatrix x(DType::bf16, 5, 128, 0);
    fill_activations(x, 5, 128, random);
    for (const Kernel* kernel : {&cpu_int4_fma, &cpu_int4_fma_panel}) {
      const Ran ran = run_guarded(*kernel, layer, x, 5, DType::bf16, 2);
      const Verdict verdict = judge(*kernel, layer, x, 5, DType::bf16, ran);
      EXPECT_EQ(verdict.wrong, 0) << kernel->name << " on " << scheme.name << ": " << verdict.first;
    }
  }
}

}  // namespace
}  // namespace gearshift::testing
