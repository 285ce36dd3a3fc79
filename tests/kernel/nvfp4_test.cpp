// Cases of NVFP4 layers that have gone wrong elsewhere, on every kernel of its lists.
#include <gtest/gtest.h>

#include "case_run.h"
#include "device/cpu_features.h"
#include "kernel/cpu/isa.h"
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/nvfp4_dot.h"
#include "kernel/layout/nvfp4_rows16_dot4.h"
#include "schemes.h"

namespace gearshift::testing {
namespace {

Named scheme_named(std::string_view name) {
  for (const Named& named : all_schemes()) {
    if (named.name == name) return named;
  }
  ADD_FAILURE() << name;
  return {};
}

// All weights 6 * 448 * 2^-10, x = 1: the raw sum 11010048 is far above what fp16 holds, the result 10752 is not.
TEST(Case07, NoOverflowBeforeTheGlobalScale) {
  LayerSpec spec;
  spec.n = 128;
  spec.k = 4096;
  spec.family = Family::nvfp4_w4a16;
  spec.scheme = scheme_named("nvfp4 weight only").scheme;
  spec.scheme.weight.global_divides = false;
  const std::vector<uint8_t> codes(128 * 2048, 0x77), scales(128 * 256, 0x7E);
  PartWeights part;
  part.n = 128;
  part.weight = codes;
  part.scale = scales;
  part.scale_dtype = DType::f8_e4m3;
  part.weight_global = 0x1p-10f;
  const LayerWeights weights{&spec, {part}};
  for (const ListEntry& entry : builtin_registry().find(Platform::cpu, Family::nvfp4_w4a16)->entries) {
    for (int64_t m : {1, 16, 64, 256}) {
      GuardedMatrix x(DType::f16, m, 4096, 0), y(DType::f16, m, 128, 0);
      for (int64_t i = 0; i < m * 4096; ++i) x.set(0, i, 1);
      Guarded workspace(static_cast<size_t>(entry.kernel->workspace_bytes(spec, m, 2)));
      entry.kernel->run({&weights, nullptr, x.const_matrix(), y.matrix(), {workspace.data(), workspace.size()}, 2});
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t n = 0; n < 128; ++n) ASSERT_EQ(y.at(i, n), 10752) << entry.kernel->name << " M " << m;
      }
    }
  }
}

// A test of the test: block scales in another order than the kernel reads must fail on practically every element.
TEST(Case15, WrongScaleLayoutIsNoticedEverywhere) {
  std::mt19937_64 random(15);
  const MadeLayer layer(scheme_named("nvfp4 compressed-tensors"), {256}, 1024, 15);
  GuardedMatrix x(DType::bf16, 1, 1024, 0);
  std::normal_distribution<float> normal;
  for (int64_t k = 0; k < 1024; ++k) x.set(0, k, normal(random));
  // The scales of the checkpoint, transposed.
  LayerWeights transposed = layer.weights;
  std::vector<uint8_t> scales(256 * 64);
  for (size_t n = 0; n < 256; ++n) {
    for (size_t g = 0; g < 64; ++g) scales[g * 256 + n] = layer.weights.parts[0].scale[n * 64 + g];
  }
  transposed.parts[0].scale = scales;
  for (const Kernel* kernel : {&cpu_nvfp4_w4a4_dot, &cpu_nvfp4_w4a4_emulation}) {
    Guarded packed(static_cast<size_t>(kernel->layout->bytes(layer.spec)));
    kernel->layout->pack(transposed, packed.data(), 2);
    Guarded workspace(static_cast<size_t>(kernel->workspace_bytes(layer.spec, 1, 2)));
    GuardedMatrix y(DType::bf16, 1, 256, 0);
    kernel->run({&transposed, packed.data(), x.const_matrix(), y.matrix(), {workspace.data(), workspace.size()}, 2});
    Ran ran;
    for (int64_t n = 0; n < 256; ++n) ran.y.push_back(y.at(0, n));
    EXPECT_GT(judge(*kernel, layer, x, 1, DType::bf16, ran).wrong, 230) << kernel->name;
  }
}

// gate and up with global scales g and 2.14 g: each half is right by itself, and merging by the maximum is caught.
TEST(Case46, FusedHalvesWithDifferentGlobalScales) {
  std::mt19937_64 random(46);
  for (const char* scheme : {"nvfp4 compressed-tensors", "nvfp4 modelopt"}) {
    MadeLayer layer(scheme_named(scheme), {128, 128}, 1024, 46);
    layer.weights.parts[1].weight_global = layer.weights.parts[0].weight_global * 2.14f;
    layer.weights.parts[1].input_scale = layer.weights.parts[0].input_scale * 1.3f;
    GuardedMatrix x(DType::bf16, 64, 1024, 0);
    fill_activations(x, 64, 1024, random);
    for (const ListEntry& entry : builtin_registry().find(Platform::cpu, Family::nvfp4_w4a4)->entries) {
      for (int64_t m : {1, 64}) {
        const Ran ran = run_guarded(*entry.kernel, layer, x, m, DType::bf16, 2);
        EXPECT_EQ(judge(*entry.kernel, layer, x, m, DType::bf16, ran).wrong, 0) << entry.kernel->name << " M " << m;
      }
      const LayerWeights separate = layer.weights;
      for (PartWeights& part : layer.weights.parts) {
        part.weight_global = std::max(separate.parts[0].weight_global, separate.parts[1].weight_global);
      }
      const Ran merged = run_guarded(*entry.kernel, layer, x, 1, DType::bf16, 2);
      layer.weights = separate;
      EXPECT_GT(judge(*entry.kernel, layer, x, 1, DType::bf16, merged).wrong, 100) << entry.kernel->name;
    }
  }
}

TEST(Nvfp4Rows16Dot4, PacksEveryByteAndUnpacksTheSame) {
  std::mt19937_64 random(std::random_device{}());
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{1}, {16}, {17, 3}, {48, 33, 1}}) {
    for (int64_t k : {16, 48, 64, 80, 256}) {
      const MadeLayer layer(scheme_named("nvfp4 compressed-tensors"), rows, k, random());
      const auto size = static_cast<size_t>(nvfp4_rows16_dot4.bytes(layer.spec));
      Guarded first(size), second(size);
      std::memset(second.data(), 0x3C, size);
      nvfp4_rows16_dot4.pack(layer.weights, first.data(), 1);
      nvfp4_rows16_dot4.pack(layer.weights, second.data(), 3);
      ASSERT_EQ(std::memcmp(first.data(), second.data(), size), 0) << "poison shows";
      ASSERT_TRUE(first.intact() && second.intact());
      std::vector<uint8_t> codes(static_cast<size_t>(layer.spec.n * k)),
          scales(static_cast<size_t>(layer.spec.n * k / 16));
      nvfp4_rows16_dot4.unpack(layer.spec, first.data(), codes.data(), scales.data());
      size_t at = 0;
      for (size_t part = 0; part < rows.size(); ++part) {
        const PartWeights& stored = layer.weights.parts[part];
        for (size_t i = 0; i < static_cast<size_t>(rows[part] * k); ++i) {
          ASSERT_EQ(codes[at + i], (stored.weight[i / 2] >> (i % 2 * 4)) & 15);
        }
        for (size_t i = 0; i < static_cast<size_t>(rows[part] * k / 16); ++i)
          ASSERT_EQ(scales[at / 16 + i], stored.scale[i]);
        at += static_cast<size_t>(rows[part] * k);
      }
    }
  }
}

// Quantizers of all instruction sets agree bit for bit, on rounding boundaries, NaN, infinities and zeros too.
TEST(Nvfp4Dot, QuantizersAgree) {
  std::mt19937_64 random(std::random_device{}());
  const QuantizeGroup portable = dot_pieces_for(Isa::portable).quantize;
  const QuantizeGroup best = dot_pieces_for(detect_isa()).quantize;
  const float special[] = {0,     -0.0f,  NAN,   -NAN,  INFINITY, -INFINITY, 1e-40f, 6,
                           0.25f, -0.75f, 1.25f, 1.75f, -2.5f,    3.5f,      5,      448};
  for (int trial = 0; trial < 20000; ++trial) {
    float x[16];
    for (float& value : x) {
      const uint64_t kind = random() % 8;
      value = kind == 0
                  ? special[random() % 16]
                  : static_cast<float>(static_cast<int64_t>(random() % 4001) - 2000) * (kind < 4 ? 0.0625f : 0.01f);
    }
    if (trial % 2 == 0) {
      for (float& value : x) {
        if (!(std::fabs(value) < 1e6f)) value = 1;
      }
    }
    const float global = trial % 3 == 0 ? 1.0f : trial % 3 == 1 ? 448.0f : 3.7e-3f;
    DotGroup a, b;
    std::memset(&a, 0x11, sizeof a);
    std::memset(&b, 0x22, sizeof b);
    portable(x, global, &a);
    best(x, global, &b);
    ASSERT_EQ(std::memcmp(&a, &b, sizeof a), 0) << "trial " << trial;
  }
}

// All instruction sets give the same bits: every sum before the accumulator is exact.
TEST(Nvfp4Dot, SameBitsOnEveryInstructionSet) {
  std::mt19937_64 random(std::random_device{}());
  const MadeLayer layer(scheme_named("nvfp4 compressed-tensors"), {40, 7}, 272, random());
  GuardedMatrix x(DType::f32, 7, 272, 0);
  fill_activations(x, 7, 272, random);
  set_max_isa(Isa::portable);
  const Ran portable = run_guarded(cpu_nvfp4_w4a4_dot, layer, x, 7, DType::f32, 1);
  for (Isa isa : {Isa::avx2, Isa::avx512_vnni}) {
    if (!isa_covers(detect_isa(), isa)) continue;
    set_max_isa(isa);
    EXPECT_EQ(active_isa(), isa);
    EXPECT_EQ(run_guarded(cpu_nvfp4_w4a4_dot, layer, x, 7, DType::f32, 3).y, portable.y) << name(isa);
  }
  set_max_isa(detect_isa());
}

}  // namespace
}  // namespace gearshift::testing
