#include <gtest/gtest.h>

#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

const PlanDifference* difference(const PlanComparison& comparison, std::string_view field) {
  for (const PlanDifference& found : comparison.differences) {
    if (found.field == field) return &found;
  }
  return nullptr;
}

PlanComparison compare(const Plan& before, const Plan& after) {
  return compare_plans(record_of(before), record_of(after));
}

TEST(ComparePlans, EqualPlansHaveNoDifference) {
  StubRegistry stubs;
  stubs.add(Family::bf16, "stub_a", "native");
  const Plan plan = plan_of(stubs, {layer_of("a", float_scheme(), 8, 8), layer_of("b", float_scheme(), 8, 8)}).value();
  const PlanComparison same = compare(plan, plan);
  EXPECT_TRUE(same.differences.empty());
  EXPECT_EQ(same.same, 2);
  EXPECT_EQ(compare_plans({}, {}).same, 0);
}

TEST(ComparePlans, RowsOfOneRoleShapeAndSchemeAreOneDifference) {
  StubRegistry stubs;
  stubs.add(Family::bf16, "stub_a", "native");
  stubs.add(Family::bf16, "stub_b", "emulation");
  std::vector<LayerSpec> rows;
  for (int i = 0; i < 12; ++i)
    rows.push_back(layer_of("layers." + std::to_string(i) + ".up", float_scheme(), i < 10 ? 8 : 16, 8));
  EXPECT_EQ(compare(plan_of(stubs, rows).value(), plan_of(stubs, rows, prefer("native")).value()).same, 12);
  Policy asked;
  asked.layers = {{"*", "emulation"}};
  const PlanComparison moved = compare(plan_of(stubs, rows).value(), plan_of(stubs, rows, asked).value());
  ASSERT_EQ(moved.differences.size(), 2u);
  EXPECT_EQ(moved.same, 0);
  EXPECT_EQ(moved.differences[0].layers.size(), 10u);
  EXPECT_EQ(moved.differences[0].field, "kernel");
  EXPECT_EQ(moved.differences[0].before, "stub_a");
  EXPECT_EQ(moved.differences[0].after, "stub_b");
  EXPECT_EQ(moved.differences[1].n, 16);
}

TEST(ComparePlans, RowsOfOnePlanOnly) {
  StubRegistry stubs;
  stubs.add(Family::bf16, "stub_a", "native");
  const LayerSpec a = layer_of("a", float_scheme(), 8, 8), b = layer_of("b", float_scheme(), 8, 8);
  LayerSpec wider = a;
  wider.n = 16;
  const PlanComparison changed = compare(plan_of(stubs, {a}).value(), plan_of(stubs, {wider, b}).value());
  ASSERT_EQ(changed.differences.size(), 2u);
  EXPECT_EQ(changed.differences[0].field, "shape");
  EXPECT_EQ(changed.differences[0].after, "16 x 8");
  EXPECT_EQ(changed.differences[1].field, "layer");
  EXPECT_EQ(changed.differences[1].before, "");
  EXPECT_EQ(changed.differences[1].layers, std::vector<std::string>{"b"});
}

// CASE-37: a re-tuned kernel narrows its contract; the diff of the two plans says so.
TEST(Case37, TheDiffShowsTheOldTileAndItsLoss) {
  const LayerSpec layer = layer_of("l", nvfp4_w4a16_scheme(), 160, 4096);
  StubRegistry v1(Platform::cuda), v2(Platform::cuda), v3(Platform::cuda);
  v1.add(Family::nvfp4_w4a16, "stub_tile", "native").contract.n.multiple = 16;
  for (StubRegistry* stubs : {&v2, &v3})
    stubs->add(Family::nvfp4_w4a16, "stub_tile", "native").contract.n.multiple = 64;
  v2.add(Family::nvfp4_w4a16, "stub_tile16", "native").contract.n.multiple = 16;
  for (StubRegistry* stubs : {&v1, &v2, &v3}) stubs->add(Family::nvfp4_w4a16, "stub_floor", "emulation");
  const auto plan = [&](const StubRegistry& stubs) { return plan_of(stubs, {layer}, {}, elsewhere("sm_70")).value(); };
  const PlanComparison kept = compare(plan(v1), plan(v2)), lost = compare(plan(v1), plan(v3));
  ASSERT_EQ(kept.differences.size(), 1u);
  EXPECT_EQ(difference(kept, "kernel")->before, "stub_tile");
  EXPECT_EQ(difference(kept, "kernel")->after, "stub_tile16");
  EXPECT_EQ(difference(lost, "kernel")->after, "stub_floor");
  EXPECT_EQ(codes(plan(v3)), std::vector<std::string>{"emulation"});
}

// CASE-77: one kernel more, with priority 2 and not verified on sm_121.
TEST(Case77, AKernelThatIsNotVerifiedChangesNothingThere) {
  StubRegistry before(Platform::cuda), after(Platform::cuda);
  for (StubRegistry* stubs : {&before, &after}) {
    stubs->add(Family::nvfp4_w4a4, "stub_first", "native").contract.archs = {"sm_100"};
    if (stubs == &after) {
      Kernel& added = stubs->add(Family::nvfp4_w4a4, "stub_new", "native");
      added.contract.archs = {"sm_90", "sm_120"};
      added.contract.verified = {"sm_90", "sm_120"};
      added.activation = ActivationUse::float16;
    }
    stubs->add(Family::nvfp4_w4a4, "stub_old", "native");
  }
  std::vector<LayerSpec> rows;
  for (int i = 0; i < 3; ++i) rows.push_back(layer_of("l." + std::to_string(i), nvfp4_scheme(), 64, 64));
  const auto change = [&](const char* arch) {
    return compare(plan_of(before, rows, {}, elsewhere(arch)).value(),
                   plan_of(after, rows, {}, elsewhere(arch)).value());
  };
  EXPECT_TRUE(change("sm_121").differences.empty());
  EXPECT_TRUE(change("sm_100").differences.empty());
  const PlanComparison moved = change("sm_120");
  ASSERT_EQ(moved.differences.size(), 2u);
  EXPECT_EQ(difference(moved, "kernel")->layers.size(), 3u);
  EXPECT_EQ(difference(moved, "kernel")->before, "stub_old");
  EXPECT_EQ(difference(moved, "kernel")->after, "stub_new");
  EXPECT_EQ(difference(moved, "arithmetic")->before, "e2m1 x nvfp4, fp32");
  EXPECT_EQ(difference(moved, "arithmetic")->after, "e2m1 x bf16, fp32 (activation_upgraded)");
}

TEST(ComparePlans, ArithmeticByBatchSize) {
  StubRegistry stubs;
  stubs.add(Family::nvfp4_w4a4, "stub_decode", "marlin").activation = ActivationUse::float16;
  stubs.line(Family::nvfp4_w4a4).m_max = 16;
  stubs.add(Family::nvfp4_w4a4, "stub_any", "native");
  const std::vector<LayerSpec> rows = {layer_of("l", nvfp4_scheme(), 64, 64)};
  Policy exact;
  exact.arithmetic = Arithmetic::exact;
  const PlanComparison changed = compare(plan_of(stubs, rows).value(), plan_of(stubs, rows, exact).value());
  EXPECT_EQ(difference(changed, "kernel")->before, "M 1..16 stub_decode, M 17 and up stub_any");
  EXPECT_TRUE(mentions(difference(changed, "arithmetic")->before, "M 1..16 bf16, M 17 and up nvfp4"));
}

}  // namespace
}  // namespace gearshift
