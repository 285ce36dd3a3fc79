// Cases of NVFP4 layers that have gone wrong elsewhere, on every kernel of its lists.
#include <gtest/gtest.h>

#include "case_run.h"
#include "device/cpu_features.h"
#include "kernel/cpu/isa.h"
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/quantize.h"
#include "kernel/layout/nibbles_rows16.h"
#include "schemes.h"

namespace gearshift::testing {
namespace {

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
    kernel->run({&transposed,
                 packed.data(),
                 x.const_matrix(),
                 y.matrix(),
                 {workspace.data(), workspace.size()},
                 2,
                 nullptr,
                 {}});
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

// Quantizers of all instruction sets agree bit for bit, on rounding boundaries, NaN, infinities and zeros too.
TEST(QuantizeE2m1, VersionsAgree) {
  std::mt19937_64 random(std::random_device{}());
  const QuantizeE2m1 portable = quantize_e2m1_for(Isa::portable);
  const QuantizeE2m1 best = quantize_e2m1_for(detect_isa());
  const float special[] = {0,     -0.0f,  NAN,   -NAN,  INFINITY, -INFINITY, 1e-40f, 6,
                           0.25f, -0.75f, 1.25f, 1.75f, -2.5f,    3.5f,      5,      448};
  const E2m1Recipe recipes[] = {{16, 1.0f},
                                {16, 448.0f},
                                {16, 3.7e-3f},
                                {32, 1, format::MxRule::floor},
                                {32, 1, format::MxRule::ceil},
                                {32, 1, format::MxRule::even}};
  for (int trial = 0; trial < 20000; ++trial) {
    float x[64];
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
    const E2m1Recipe& recipe = recipes[trial % 6];
    const int64_t groups = 64 / recipe.group;
    int8_t a[64], b[64];
    float a_scales[4], b_scales[4];
    std::memset(a, 0x11, sizeof a);
    std::memset(b, 0x22, sizeof b);
    portable(recipe, x, groups, a, a_scales);
    best(recipe, x, groups, b, b_scales);
    ASSERT_EQ(std::memcmp(a, b, sizeof a), 0) << "trial " << trial;
    ASSERT_EQ(std::memcmp(a_scales, b_scales, static_cast<size_t>(groups) * 4), 0) << "trial " << trial;
  }
}

TEST(QuantizeInt8, VersionsAgree) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const float special[] = {0, -0.0f, NAN, 1e-40f, 63.5f, -64.5f, 127, -127};
  for (int trial = 0; trial < 20000; ++trial) {
    float x[96];
    for (float& value : x) {
      value = random() % 8 == 0 ? special[random() % 8]
                                : static_cast<float>(static_cast<int64_t>(random() % 255) - 127) * 0.5f;
    }
    if (trial % 5 == 0) {
      for (float& value : x) value *= 1e-38f;
    }
    if (trial % 16 == 0) x[random() % 96] = trial % 32 == 0 ? INFINITY : -INFINITY;
    int8_t a[96], b[96];
    std::memset(a, 0x11, sizeof a);
    std::memset(b, 0x22, sizeof b);
    const float scale = quantize_int8_for(Isa::portable)(x, 96, a);
    ASSERT_EQ(quantize_int8_for(detect_isa())(x, 96, b), scale) << "seed " << seed;
    ASSERT_EQ(std::memcmp(a, b, sizeof a), 0) << "trial " << trial << " seed " << seed;
  }
}

TEST(SumHalfwords, VersionsAgree) {
  std::mt19937_64 random(std::random_device{}());
  int8_t codes[192];
  for (int8_t& code : codes) code = static_cast<int8_t>(random());
  for (int64_t unit : {16, 32}) {
    std::vector<uint32_t> a(12, 1), b(12, 2);
    sum_halfwords(Isa::portable, codes, unit, 192 / unit, a.data());
    sum_halfwords(detect_isa(), codes, unit, 192 / unit, b.data());
    for (int64_t u = 0; u < 192 / unit; ++u) ASSERT_EQ(a[static_cast<size_t>(u)], b[static_cast<size_t>(u)]) << u;
  }
}

// All instruction sets give the same bits: every sum before the accumulator is exact.
TEST(Dot, SameBitsOnEveryInstructionSetAndRoute) {
  std::mt19937_64 random(std::random_device{}());
  const std::pair<const char*, std::array<const Kernel*, 2>> cases[] = {
      {"nvfp4 compressed-tensors", {&cpu_nvfp4_w4a4_dot, &cpu_nvfp4_w4a4_dot_panel}},
      {"mxfp4", {&cpu_mxfp4_dot, &cpu_mxfp4_dot_panel}}};
  for (const auto& [scheme, kernels] : cases) {
    const MadeLayer layer(scheme_named(scheme), {40, 7}, 1296, random());
    GuardedMatrix x(DType::f32, 7, 1296, 0);
    fill_activations(x, 7, 1296, random);
    set_max_isa(Isa::portable);
    const Ran portable = run_guarded(*kernels[0], layer, x, 7, DType::f32, 1);
    for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512_vnni}) {
      if (!isa_covers(detect_isa(), isa)) continue;
      set_max_isa(isa);
      EXPECT_EQ(active_isa(), isa);
      for (const Kernel* kernel : kernels) {
        EXPECT_EQ(run_guarded(*kernel, layer, x, 7, DType::f32, 3).y, portable.y) << kernel->name << " " << name(isa);
      }
    }
  }
  set_max_isa(detect_isa());
}

}  // namespace
}  // namespace gearshift::testing
