#include "plan/budget.h"

#include <gtest/gtest.h>

#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

TEST(RowsPaidForTest, MostBatchSizesAByteFirst) {
  const std::vector<LayoutOffer> offers = {{0, 100, 1}, {1, 100, 4}, {2, 50, 1}, {3, 1000, 5}};
  EXPECT_EQ(rows_paid_for(offers, 0), (std::vector<size_t>{}));
  EXPECT_EQ(rows_paid_for(offers, 99), (std::vector<size_t>{2}));
  EXPECT_EQ(rows_paid_for(offers, 150), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(rows_paid_for(offers, 250), (std::vector<size_t>{1, 2, 0}));
  EXPECT_EQ(rows_paid_for(offers, 1u << 30), (std::vector<size_t>{1, 2, 0, 3}));
}

class BudgetTest : public ::testing::Test {
 protected:
  BudgetTest() {
    Kernel& decode = stubs.add(Family::nvfp4_w4a4, "stub_decode", "native");
    stubs.line(Family::nvfp4_w4a4).m_max = 16;
    Kernel& general = stubs.add(Family::nvfp4_w4a4, "stub_general", "native");
    decode.layout = stubs.layout("rows16");
    general.layout = stubs.layout("tile64");
  }
  Plan plan(uint64_t budget, std::vector<int64_t> batch = {1, 16, 64}) {
    Policy policy;
    policy.memory_budget = budget;
    policy.batch = std::move(batch);
    return plan_of(stubs, {layer_of("a", nvfp4_scheme(), 64, 64), layer_of("b", nvfp4_scheme(), 64, 128)}, policy)
        .value();
  }
  StubRegistry stubs;
};

TEST_F(BudgetTest, NoBudgetOneLayout) {
  const Plan none = plan(0);
  EXPECT_EQ(served(none, 0), "stub_decode 1..");
  EXPECT_EQ(verdict(none, "stub_general").field, "layout");
  EXPECT_EQ(memory_of(none).second_layout_bytes, uint64_t{2} * kPackedBytes);
}

TEST_F(BudgetTest, PaysLayerByLayer) {
  const Plan one = plan(kPackedBytes);
  EXPECT_EQ(served(one, 0), "stub_decode 1..16, stub_general 17..");
  EXPECT_EQ(served(one, 1), "stub_decode 1..");
  EXPECT_EQ(memory_of(one).second_layout_bytes, uint64_t{3} * kPackedBytes);
  EXPECT_EQ(memory_of(one).prepare_peak_bytes, uint64_t{3} * kPackedBytes);
  const Plan both = plan(2 * kPackedBytes);
  EXPECT_EQ(served(both, 1), "stub_decode 1..16, stub_general 17..");
  EXPECT_EQ(verdict(both, "stub_general").kind, VerdictKind::selected);
  EXPECT_NE(one.hash, both.hash);
}

TEST_F(BudgetTest, BuysNothingThatNoBatchSizeNeeds) {
  EXPECT_EQ(served(plan(1 << 20, {1, 8})), "stub_decode 1..");
  EXPECT_EQ(memory_of(plan(1 << 20, {1, 8})).second_layout_bytes, uint64_t{2} * kPackedBytes);
}

TEST(Case75, TheReportListsResidentTransientAndWorkspace) {
  StubRegistry stubs;
  Kernel& kernel = stubs.add(Family::mixed_precision, "stub_packed", "native");
  kernel.layout = stubs.layout("tile64");
  Policy policy;
  policy.batch = {1, 256};
  const Plan plan = plan_of(stubs, {layer_of("a.up_proj", awq_scheme(128), 28672, 8192)}, policy).value();
  const PlanMemory memory = memory_of(plan);
  EXPECT_EQ(memory.weight_bytes, plan.layers[0].layer.weight_bytes);
  EXPECT_EQ(memory.scale_bytes, uint64_t{28672} * 64 * 2);
  EXPECT_EQ(memory.second_layout_bytes, static_cast<uint64_t>(kPackedBytes));
  EXPECT_EQ(memory.prepare_peak_bytes, static_cast<uint64_t>(kPackedBytes));
  EXPECT_EQ(memory.workspace_bytes, (std::vector<std::pair<int64_t, int64_t>>{{1, 10}, {256, 2560}}));
}

}  // namespace
}  // namespace gearshift
