// make_plan as a whole: scopes, what touched nothing, and what holds for any lists.
#include "gearshift/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

// ---- the global choice speaks of quantized families -----------------------------------------------------------------

struct MixedModel : ::testing::Test {
  MixedModel() {
    stubs.add(Family::nvfp4_w4a4, "stub_nvfp4_native", "native");
    stubs.add(Family::nvfp4_w4a4, "stub_nvfp4_cutlass", "cutlass");
    stubs.add(Family::bf16, "stub_bf16_torch", "torch");
    stubs.add(Family::bf16, "stub_bf16_cutlass", "cutlass");
    rows = {layer_of("model.layers.0.mlp.down_proj", nvfp4_scheme(), 64, 64),
            layer_of("lm_head", float_scheme(), 64, 64)};
  }
  StubRegistry stubs;
  std::vector<LayerSpec> rows;
};

TEST_F(MixedModel, UnquantizedLayersFollowOnlyWhereTheBackendHasAKernel) {
  const Plan native = plan_of(stubs, rows, strictly(prefer("native"))).value();
  EXPECT_EQ(served(native, 0), "stub_nvfp4_native 1..");
  EXPECT_EQ(served(native, 1), "stub_bf16_torch 1..");
  EXPECT_EQ(native.layers[1].decision->fallback, std::nullopt);
  EXPECT_TRUE(native.warnings.empty());
  EXPECT_EQ(served(plan_of(stubs, rows, prefer("cutlass")).value(), 1), "stub_bf16_cutlass 1..");
}

TEST_F(MixedModel, AskingForUnquantizedLayersIsARequestLikeAnyOther) {
  Policy by_family;
  by_family.linear.families[Family::bf16] = "native";
  Policy by_layer;
  by_layer.layers = {{"lm_head", "native"}};
  for (const Policy& policy : {by_family, by_layer}) {
    const Plan plan = plan_of(stubs, rows, policy).value();
    EXPECT_EQ(codes(plan), std::vector<std::string>{"backend_not_covered"});
    EXPECT_EQ(plan.warnings[0].family, "bf16");
    EXPECT_EQ(plan_of(stubs, rows, strictly(policy)).error().code, ErrorCode::fallback_refused);
  }
}

TEST_F(MixedModel, ExpertsHearTheirOwnOption) {
  rows[0].kind = LayerKind::experts;
  rows[0].experts = 4;
  EXPECT_EQ(served(plan_of(stubs, rows, prefer("cutlass")).value(), 0), "stub_nvfp4_native 1..");
  Policy policy;
  policy.moe.global = "cutlass";
  const Plan plan = plan_of(stubs, rows, policy).value();
  EXPECT_EQ(served(plan, 0), "stub_nvfp4_cutlass 1..");
  EXPECT_EQ(served(plan, 1), "stub_bf16_torch 1..");
  EXPECT_EQ(verdict(plan, "stub_nvfp4_native").field, "moe_backend");
  policy.moe.global = "marlin";
  EXPECT_EQ(plan_of(stubs, rows, strictly(policy)).error().code, ErrorCode::fallback_refused)
      << "one rule for dense and expert layers";
}

// ---- what touched nothing -------------------------------------------------------------------------------------------

TEST_F(MixedModel, WhatTouchedNothingIsListed) {
  stubs.add(Family::fp8_w8a8, "stub_fp8", "native");
  Policy policy;
  policy.linear.global = "native";
  policy.linear.families[Family::fp8_w8a8] = "cutlass";
  policy.linear.families[Family::bf16] = "cutlass";
  policy.moe.global = "cutlass";
  policy.layers = {{"*.nowhere", "native"}, {"lm_head", "auto"}};
  policy.disable = {"nothing*", "stub_fp8", "stub_nvfp4_c*", "fp8_w8a8"};
  const Plan plan = plan_of(stubs, rows, policy).value();
  EXPECT_EQ(plan.unused, (std::vector<std::string>{"*.nowhere=native", "bf16=cutlass", "fp8_w8a8=cutlass", "cutlass",
                                                   "nothing*", "stub_fp8", "fp8_w8a8"}));
  EXPECT_TRUE(plan_of(stubs, rows).value().unused.empty());
}

TEST_F(MixedModel, AGlobalBackendThatNobodyHearsTouchedNothing) {
  rows.erase(rows.begin());
  const Plan plan = plan_of(stubs, rows, strictly(prefer("native"))).value();
  EXPECT_TRUE(plan.warnings.empty());
  EXPECT_EQ(plan.unused, std::vector<std::string>{"native"});
}

TEST_F(MixedModel, FactsOfTheModelAreCarried) {
  ModelLayers model;
  model.architecture = "StubForCausalLM";
  model.quant_method = "modelopt";
  model.skipped = {"model.embed_tokens"};
  model.layers.resize(5);
  PlanRequest request;
  request.model = &model;
  request.layers = rows;
  request.model_path = "/some/where";
  request.device = here();
  request.registry = &stubs.registry();
  const Plan plan = make_plan(request).value();
  EXPECT_EQ(plan.architecture, "StubForCausalLM");
  EXPECT_EQ(plan.quant_method, "modelopt");
  EXPECT_EQ(plan.skipped, model.skipped);
  EXPECT_EQ(plan.linear_layers, 5);
  EXPECT_EQ(plan.model_path, "/some/where");
  EXPECT_EQ(plan.device.name, here().name);
  ASSERT_EQ(plan.layers.size(), 2u);
  EXPECT_EQ(plan.layers[1].layer.name, "lm_head");
}

TEST(RangeFor, EveryBatchSizeAtBothSidesOfEachBoundary) {
  Decision decision;
  decision.ranges.resize(3);
  decision.ranges[0] = {1, 16, nullptr, "static", ""};
  decision.ranges[1] = {17, 17, nullptr, "static", ""};
  decision.ranges[2] = {18, 0, nullptr, "static", ""};
  for (int64_t m : {1, 2, 16}) EXPECT_EQ(range_for(decision, m).m_min, 1);
  EXPECT_EQ(range_for(decision, 17).m_min, 17);
  for (int64_t m : {int64_t{18}, int64_t{4096}, std::numeric_limits<int64_t>::max()})
    EXPECT_EQ(range_for(decision, m).m_min, 18);
}

// ---- thousands of rows ----------------------------------------------------------------------------------------------

TEST(ManyRows, AreDecidedOncePerClassAndRequest) {
  StubRegistry stubs;
  stubs.add(Family::nvfp4_w4a4, "stub_native", "native");
  stubs.add(Family::bf16, "stub_bf16", "native");
  std::vector<LayerSpec> rows;
  for (int i = 0; i < 1000; ++i)
    for (int role = 0; role < 7; ++role)
      rows.push_back(layer_of("model.layers." + std::to_string(i) + ".r" + std::to_string(role),
                              role == 6 ? float_scheme() : nvfp4_scheme(), 64 * (1 + role / 2), 128));
  Policy policy;
  policy.batch = {1, 8, 64};
  policy.layers = {{"*.r0", "native"}};
  workspace_questions() = 0;
  const Plan plan = plan_of(stubs, rows, policy).value();
  EXPECT_EQ(plan.layers.size(), 7000u);
  // r0 by its pattern; r1 alike without it; r2 and r3, r4 and r5, r6: five decisions of three batch sizes.
  EXPECT_EQ(workspace_questions(), 5 * 3);
  EXPECT_EQ(plan.layers[7].decision, plan.layers[0].decision);
  EXPECT_NE(plan.layers[1].decision, plan.layers[0].decision);
}

// ---- what holds for any lists ---------------------------------------------------------------------------------------

struct RandomLists {
  explicit RandomLists(uint64_t seed) : random(seed) {
    const Layout* layouts[] = {&checkpoint_layout, stubs.layout("a"), stubs.layout("b")};
    const char* backends[] = {"native", "cutlass", "marlin"};
    const size_t count = 1 + random() % 7;
    for (size_t i = 0; i < count; ++i) {
      Kernel& kernel = stubs.add(Family::nvfp4_w4a4, "stub_" + std::to_string(i), backends[random() % 3]);
      kernel.layout = layouts[random() % 3];
      if (random() % 2) kernel.activation = ActivationUse::float16;
      if (random() % 3 == 0) kernel.contract.m.min = 1 + static_cast<int64_t>(random() % 20);
      if (random() % 2) kernel.contract.m.max = kernel.contract.m.min + static_cast<int64_t>(random() % 100);
      if (random() % 4 == 0) kernel.contract.k.multiple = 256;
      ListEntry& line = stubs.line(Family::nvfp4_w4a4);
      if (random() % 2) line.m_max = 1 + static_cast<int64_t>(random() % 60);
      if (random() % 5 == 0)
        store.quarantines.push_back({std::string(kernel.name), 1, layer_class(layer), "BF16",
                                     1 + static_cast<int64_t>(random() % 30), random() % 2 ? 0 : 40, "off"});
    }
    if (random() % 4) stubs.add(Family::nvfp4_w4a4, "stub_floor", "reference");
    auto& entries = stubs.list(Family::nvfp4_w4a4).entries;
    std::shuffle(entries.begin(), entries.end(), random);
    if (random() % 2) policy.linear.global = backends[random() % 3];
    if (random() % 3 == 0) policy.arithmetic = Arithmetic::exact;
    if (random() % 4 == 0) policy.single_kernel = true;
    if (random() % 4 == 0) policy.disable = {"stub_" + std::to_string(random() % count)};
  }
  Result<Plan> plan() const { return plan_of(stubs, {layer}, policy, here(), store); }

  std::mt19937_64 random;
  StubRegistry stubs;
  Store store;
  Policy policy;
  LayerSpec layer = layer_of("l.0.down_proj", nvfp4_scheme(), 512, 1824);
};

// Batch sizes at which a kernel may run according to its contract and the store, asked one by one.
bool may_serve(const RandomLists& lists, const Kernel& kernel, int64_t m) {
  if (kernel.contract.m.min > m || (kernel.contract.m.max != 0 && kernel.contract.m.max < m)) return false;
  return std::none_of(lists.store.quarantines.begin(), lists.store.quarantines.end(), [&](const Quarantine& q) {
    return q.kernel == kernel.name && q.m_min <= m && (q.m_max == 0 || m <= q.m_max);
  });
}

void expect_sound(const RandomLists& lists, const Plan& plan) {
  const Decision& decision = *plan.layers[0].decision;
  const auto& entries = lists.stubs.registry().find(Platform::cpu, Family::nvfp4_w4a4)->entries;

  // Ranges cover 1..infinity without gap or overlap.
  ASSERT_FALSE(decision.ranges.empty());
  EXPECT_EQ(decision.ranges.front().m_min, 1);
  EXPECT_EQ(decision.ranges.back().m_max, 0);
  for (size_t i = 1; i < decision.ranges.size(); ++i) {
    EXPECT_EQ(decision.ranges[i].m_min, decision.ranges[i - 1].m_max + 1);
    EXPECT_NE(decision.ranges[i].kernel, decision.ranges[i - 1].kernel) << "two neighbours that are one range";
  }

  // One verdict per candidate, list order, with a reason; selected exactly where it serves.
  ASSERT_EQ(decision.candidates.size(), entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const Verdict& verdict = decision.candidates[i];
    EXPECT_EQ(verdict.kernel, entries[i].kernel);
    EXPECT_FALSE(verdict.reason.empty());
    const bool serves = std::any_of(decision.ranges.begin(), decision.ranges.end(),
                                    [&](const PlannedRange& range) { return range.kernel == verdict.kernel; });
    EXPECT_EQ(verdict.kind == VerdictKind::selected, serves);
    EXPECT_EQ(verdict.stage == Stage::rank, verdict.kind != VerdictKind::rejected);
    if (verdict.kind == VerdictKind::rejected) {
      EXPECT_FALSE(verdict.field.empty());
    }
  }

  // Whoever serves may: contract, quarantine, policy, one packed layout.
  std::optional<const Layout*> packed;
  for (const PlannedRange& range : decision.ranges) {
    EXPECT_FALSE(refuses(*range.kernel, lists.layer, here(), DType::bf16));
    const int64_t last = range.m_max == 0 ? range.m_min + 500 : range.m_max;
    for (int64_t m = range.m_min; m <= last; ++m) ASSERT_TRUE(may_serve(lists, *range.kernel, m)) << "M " << m;
    if (lists.policy.arithmetic == Arithmetic::exact) {
      EXPECT_EQ(range.kernel->activation, ActivationUse::as_checkpoint);
    }
    for (const std::string& name : lists.policy.disable) EXPECT_NE(range.kernel->name, name);
    if (range.kernel->layout == &checkpoint_layout) continue;
    EXPECT_EQ(packed.value_or(range.kernel->layout), range.kernel->layout) << "two packed layouts";
    packed = range.kernel->layout;
  }
  if (lists.policy.single_kernel) {
    EXPECT_EQ(decision.ranges.size(), 1u);
  }
}

TEST(AnyLists, PlansAreSoundAndRepeatable) {
  const uint64_t first_seed = std::random_device{}();
  int plans = 0, refusals = 0;
  for (uint64_t seed = first_seed; seed < first_seed + 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomLists lists(seed);
    const Result<Plan> plan = lists.plan();
    if (!plan.ok()) {
      ++refusals;
      const ErrorCode code = plan.error().code;
      ASSERT_TRUE(code == ErrorCode::no_kernel || code == ErrorCode::self_check) << plan.error().message();
      continue;
    }
    ++plans;
    expect_sound(lists, *plan);
    EXPECT_EQ(lists.plan().value().hash, plan->hash);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(plans, 0);
  EXPECT_GT(refusals, 0);
}

TEST(AnyLists, AFloorThatReadsTheCheckpointServesEveryPlan) {
  const uint64_t first_seed = std::random_device{}();
  for (uint64_t seed = first_seed; seed < first_seed + 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomLists lists(seed);
    lists.stubs.add(Family::nvfp4_w4a4, "stub_last", "reference");
    ASSERT_TRUE(lists.plan().ok());
  }
}

// A kernel for up to eight rows serves the batches in which an expert expects no more; quarantines, measurements and
// calls go on speaking of rows.
TEST(Plan, BatchRangesOfExpertRowsAreTokens) {
  StubRegistry stubs;
  stubs.add(Family::nvfp4_w4a4, "few", "native");
  stubs.line(Family::nvfp4_w4a4).m_max = 8;
  stubs.add(Family::nvfp4_w4a4, "many", "native");
  LayerSpec experts = layer_of("layers.0.mlp.experts.down_proj", nvfp4_scheme(), 64, 64);
  experts.kind = LayerKind::experts;
  experts.experts = 128;
  experts.stacked = true;
  PlanRequest request;
  request.layers = {experts, layer_of("layers.0.self_attn.o_proj", nvfp4_scheme(), 64, 64)};
  request.device = here();
  request.registry = &stubs.registry();
  request.routing = {128, 8, {}};
  const Plan plan = make_plan(request).value();
  const auto shown = [](const Decision& decision) {
    Decision by_batch;
    by_batch.ranges = decision.by_batch();
    return served(by_batch);
  };
  EXPECT_EQ(served(plan, 0), "few 1..8, many 9..");
  EXPECT_EQ(shown(*plan.layers[0].decision), "few 1..128, many 129..");
  EXPECT_EQ(shown(*plan.layers[1].decision), "few 1..8, many 9..");
  EXPECT_EQ(plan.routing.top_k, 8);

  // On paper they are tokens, and a lock turns them into the same rows again.
  const PlanRecord record = record_of(plan);
  EXPECT_EQ(record.layers[0].ranges[0].m_max, 128);
  PlanRequest locked = request;
  locked.lock = &record;
  const Plan again = make_plan(locked).value();
  EXPECT_EQ(again.hash, plan.hash);
  EXPECT_EQ(served(again, 0), "few 1..8, many 9..");

  PlanRequest unknown = request;
  unknown.routing = {};
  const Plan rows = make_plan(unknown).value();
  EXPECT_EQ(shown(*rows.layers[0].decision), "few 1..8, many 9..");
  EXPECT_NE(rows.hash, plan.hash);
}

}  // namespace
}  // namespace gearshift
