#include "plan/warnings.h"

#include <gtest/gtest.h>

#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

std::string layer_name(int64_t i, const char* role) { return "model.layers." + std::to_string(i) + "." + role; }

// The true cause, whatever it is, and never another one.
TEST(Case58, TrueReasonsForWeightOnlyKernels) {
  const auto rows = [](Scheme scheme) { return std::vector<LayerSpec>{layer_of("l", std::move(scheme), 64, 128)}; };
  const auto add_w4a16 = [](StubRegistry& stubs, Family family) {
    stubs.add(family, "stub_w4a16", "marlin").activation = ActivationUse::float16;
  };
  const DeviceProfile sm120 = elsewhere("sm_120"), sm90 = elsewhere("sm_90");

  StubRegistry weight_only(Platform::cuda);  // (a) the checkpoint is weight-only
  add_w4a16(weight_only, Family::nvfp4_w4a16);
  const Plan a = plan_of(weight_only, rows(nvfp4_w4a16_scheme()), {}, sm120).value();
  EXPECT_TRUE(a.warnings.empty());
  EXPECT_EQ(a.layers[0].decision->differs, "");

  StubRegistry both(Platform::cuda);  // (b) a native kernel that another device runs
  both.add(Family::nvfp4_w4a4, "stub_w4a4", "cutlass").contract.archs = {"sm_120"};
  add_w4a16(both, Family::nvfp4_w4a4);
  const Plan b = plan_of(both, rows(nvfp4_scheme()), {}, sm90).value();
  ASSERT_EQ(codes(b), std::vector<std::string>{"activation_upgraded"});
  EXPECT_TRUE(mentions(b.warnings[0].message, "sm_120")) << b.warnings[0].message;
  EXPECT_TRUE(mentions(b.warnings[0].message, "stub_w4a4"));

  StubRegistry missing(Platform::cuda);  // (c) none in this build
  add_w4a16(missing, Family::nvfp4_w4a4);
  const Plan c = plan_of(missing, rows(nvfp4_scheme()), {}, sm120).value();
  ASSERT_EQ(codes(c), std::vector<std::string>{"activation_upgraded"});
  EXPECT_TRUE(mentions(c.warnings[0].message, "this build has no kernel")) << c.warnings[0].message;
  EXPECT_FALSE(mentions(c.warnings[0].message, "sm_120"));

  Policy deny;  // (d) left out by the user
  deny.disable = {"cutlass"};
  const Plan d = plan_of(both, rows(nvfp4_scheme()), deny, sm120).value();
  ASSERT_EQ(codes(d), std::vector<std::string>{"activation_upgraded"});
  EXPECT_TRUE(mentions(d.warnings[0].message, "--disable cutlass")) << d.warnings[0].message;
  EXPECT_FALSE(mentions(d.warnings[0].message, "sm_120"));
}

TEST(Case59, OneWarningWithEveryCauseAndItsCount) {
  StubRegistry stubs;
  Kernel& fast = stubs.add(Family::nvfp4_w4a4, "stub_fast", "native");
  fast.contract.k.multiple = 256;
  fast.contract.n.max = 4096;
  stubs.add(Family::nvfp4_w4a4, "stub_other", "cutlass");
  std::vector<LayerSpec> rows;
  for (int64_t i = 0; i < 448; ++i)
    rows.push_back(layer_of(layer_name(i, "mlp.down_proj"), nvfp4_scheme(), i == 7 || i == 9 ? 8192 : 512,
                            i == 7 || i == 9 ? 1024 : 1824));
  const Plan plan = plan_of(stubs, rows, prefer("native")).value();
  ASSERT_EQ(plan.warnings.size(), 1u);
  const Warning& warning = plan.warnings[0];
  EXPECT_EQ(warning.code, "backend_not_usable");
  EXPECT_EQ(warning.family, "nvfp4_w4a4");
  EXPECT_EQ(warning.layers, 448);
  EXPECT_TRUE(mentions(warning.message, "446 layers, such as model.layers.0.mlp.down_proj")) << warning.message;
  EXPECT_TRUE(mentions(warning.message, "2 layers, such as model.layers.7.mlp.down_proj")) << warning.message;
  EXPECT_TRUE(mentions(warning.message, "4096")) << warning.message;
  EXPECT_TRUE(mentions(warning.message, "256")) << warning.message;
}

TEST(Case59, DifferentCodesStayApart) {
  StubRegistry stubs;
  stubs.add(Family::nvfp4_w4a4, "stub_fast", "native").contract.k.multiple = 256;
  stubs.add(Family::nvfp4_w4a4, "stub_other", "cutlass");
  stubs.add(Family::fp8_w8a8, "stub_fp8", "cutlass");
  const Plan plan =
      plan_of(stubs,
              {layer_of("l.0.a", nvfp4_scheme(), 64, 1824), layer_of("l.0.b", fp8_channel_scheme(), 64, 64),
               layer_of("l.1.a", nvfp4_scheme(), 64, 1824), layer_of("l.1.b", nvfp4_scheme(), 64, 256)},
              prefer("native"))
          .value();
  EXPECT_EQ(codes(plan), (std::vector<std::string>{"backend_not_usable", "backend_not_covered"}));
  EXPECT_EQ(plan.warnings[0].layers, 2);
  EXPECT_EQ(plan.warnings[1].layers, 1);
  EXPECT_EQ(plan.warnings[1].family, "fp8_w8a8");
}

TEST(Emulation, WhereNoRangeHasAFasterKernel) {
  StubRegistry stubs;
  Kernel& fast = stubs.add(Family::nvfp4_w4a4, "stub_fast", "native");
  fast.contract.m.max = 4;
  stubs.add(Family::nvfp4_w4a4, "stub_emulation", "emulation");
  stubs.add(Family::fp8_w8a8, "stub_reference", "reference");
  const std::vector<LayerSpec> rows = {layer_of("a", nvfp4_scheme(), 64, 64),
                                       layer_of("b", fp8_channel_scheme(), 64, 64)};
  const Plan plan = plan_of(stubs, rows).value();
  ASSERT_EQ(codes(plan), std::vector<std::string>{"emulation"});
  EXPECT_EQ(plan.warnings[0].family, "fp8_w8a8") << "one fast range is enough";
  EXPECT_TRUE(mentions(plan.warnings[0].message, "this build has no faster kernel")) << plan.warnings[0].message;

  fast.contract.isa = Isa::avx512;
  const Plan slower = plan_of(stubs, rows).value();
  EXPECT_EQ(codes(slower), (std::vector<std::string>{"emulation", "emulation"}));
  EXPECT_TRUE(mentions(slower.warnings[0].message, "stub_fast: ")) << slower.warnings[0].message;
}

TEST(Emulation, OneReasonOfSeveralKernelsIsToldOnce) {
  StubRegistry stubs(Platform::cuda);
  for (const char* name : {"stub_a", "stub_b"}) stubs.add(Family::fp8_w8a8, name, "native").contract.targets = {"none"};
  stubs.add(Family::fp8_w8a8, "stub_floor", "emulation");
  const Plan plan = plan_of(stubs, {layer_of("l", fp8_channel_scheme(), 64, 64)}, {}, elsewhere("sm_90")).value();
  EXPECT_TRUE(mentions(warning(plan, "emulation").message, "stub_a, stub_b: this build has no CUDA code"))
      << warning(plan, "emulation").message;
}

TEST(Emulation, AnotherPlatformIsServedByTheHost) {
  StubRegistry stubs(Platform::cpu);
  stubs.add(Family::nvfp4_w4a4, "stub_fast", "native");
  const Plan plan = plan_of(stubs, {layer_of("a", nvfp4_scheme(), 64, 64)}, {}, elsewhere("sm_120")).value();
  ASSERT_EQ(codes(plan), std::vector<std::string>{"emulation"});
  EXPECT_TRUE(mentions(plan.warnings[0].message, "this build has no kernel for nvfp4_w4a4 on cuda"));
  EXPECT_FALSE(plan.layers[0].decision->runnable);
}

TEST(UnknownScheme, IsCountedPerModel) {
  StubRegistry stubs;
  ModelLayers model;
  model.unknown = {{"l.0.a", "bitsandbytes"}, {"l.1.a", "bitsandbytes"}, {"l.2.a", "torchao"}};
  PlanRequest request;
  request.model = &model;
  request.device = here();
  request.registry = &stubs.registry();
  const Plan plan = make_plan(request).value();
  ASSERT_EQ(codes(plan), std::vector<std::string>{"unknown_scheme"});
  EXPECT_EQ(plan.warnings[0].layers, 3);
  EXPECT_TRUE(mentions(plan.warnings[0].message, "bitsandbytes [2 layers, such as l.0.a]"));
  EXPECT_TRUE(mentions(plan.warnings[0].message, "torchao [l.2.a]"));
}

}  // namespace
}  // namespace gearshift
