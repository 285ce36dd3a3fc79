// The rules of choosing, one at a time, through make_plan.
#include "plan/select.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

std::vector<LayerSpec> one(Scheme scheme, int64_t n = 512, int64_t k = 1024) {
  return {layer_of("model.layers.0.mlp.down_proj", std::move(scheme), n, k)};
}

// A decode kernel for M <= 16, a general one, the floor.
struct ThreeGears : ::testing::Test {
  ThreeGears() {
    decode = &stubs.add(Family::nvfp4_w4a4, "stub_decode", "native");
    stubs.line(Family::nvfp4_w4a4).m_max = 16;
    stubs.line(Family::nvfp4_w4a4).why = "few rows, one pass over the weights";
    general = &stubs.add(Family::nvfp4_w4a4, "stub_general", "emulation");
    floor = &stubs.add(Family::nvfp4_w4a4, "stub_reference", "reference");
    floor->accumulator = "fp64";
  }
  StubRegistry stubs;
  Kernel *decode, *general, *floor;
};

TEST_F(ThreeGears, AutoFollowsListOrderAndPreference) {
  const Plan plan = plan_of(stubs, one(nvfp4_scheme())).value();
  EXPECT_EQ(served(plan), "stub_decode 1..16, stub_general 17..");
  EXPECT_EQ(verdict(plan, "stub_decode").kind, VerdictKind::selected);
  EXPECT_TRUE(mentions(verdict(plan, "stub_decode").reason, "M 1..16"));
  EXPECT_TRUE(mentions(verdict(plan, "stub_decode").reason, "few rows"));
  EXPECT_EQ(verdict(plan, "stub_general").kind, VerdictKind::selected);
  const Verdict& last = verdict(plan, "stub_reference");
  EXPECT_EQ(last.kind, VerdictKind::eligible);
  EXPECT_EQ(last.stage, Stage::rank);
  EXPECT_TRUE(mentions(last.reason, "M 1..16 stub_decode stands before it")) << last.reason;
  EXPECT_TRUE(mentions(last.reason, "M 17 and up stub_general stands before it")) << last.reason;
  EXPECT_TRUE(plan.warnings.empty());
  EXPECT_EQ(plan.layers[0].decision->fallback, std::nullopt);
}

TEST_F(ThreeGears, TwoRangesOfOneKernelAreOneVerdict) {
  general->contract.m.min = 17;
  general->contract.m.max = 64;
  decode->contract.m = {};
  floor->contract.m.max = 64;
  const Plan plan = plan_of(stubs, one(nvfp4_scheme())).value();
  EXPECT_EQ(served(plan), "stub_decode 1..16, stub_general 17..64, stub_decode 65..");
  EXPECT_TRUE(mentions(verdict(plan, "stub_decode").reason, "M 1..16 and M 65 and up"));
}

TEST_F(ThreeGears, ANamedBackendServesEveryBatchSizeOfItsContract) {
  const Plan plan = plan_of(stubs, one(nvfp4_scheme()), prefer("native")).value();
  EXPECT_EQ(served(plan), "stub_decode 1..");
  EXPECT_EQ(plan.layers[0].decision->fallback, std::nullopt);
  EXPECT_TRUE(plan.warnings.empty());
  for (const char* other : {"stub_general", "stub_reference"}) {
    EXPECT_EQ(verdict(plan, other).kind, VerdictKind::rejected);
    EXPECT_EQ(verdict(plan, other).stage, Stage::policy);
    EXPECT_EQ(verdict(plan, other).field, "linear_backend");
    EXPECT_EQ(verdict(plan, other).wanted, "native");
    EXPECT_TRUE(mentions(verdict(plan, other).reason, "--linear-backend native"));
  }
  EXPECT_TRUE(plan_of(stubs, one(nvfp4_scheme()), strictly(prefer("native"))).ok());
}

TEST_F(ThreeGears, BetweenKernelsOfTheNamedBackendListLinesStillSpeak) {
  stubs.add(Family::nvfp4_w4a4, "stub_native_wide", "native");
  EXPECT_EQ(served(plan_of(stubs, one(nvfp4_scheme()), prefer("native")).value()),
            "stub_decode 1..16, stub_native_wide 17..");
}

TEST_F(ThreeGears, WhereItsContractEndsTheRestFallsBack) {
  decode->contract.m.max = 32;
  const Plan plan = plan_of(stubs, one(nvfp4_scheme()), prefer("native")).value();
  EXPECT_EQ(served(plan), "stub_decode 1..32, stub_general 33..");
  ASSERT_TRUE(plan.layers[0].decision->fallback);
  EXPECT_EQ(plan.layers[0].decision->fallback->requested, "native");
  EXPECT_TRUE(mentions(plan.layers[0].decision->fallback->reason, "M 33 and up"));
  ASSERT_EQ(codes(plan), std::vector<std::string>{"backend_not_usable"});
  EXPECT_TRUE(mentions(plan.warnings[0].message, "M 33 and up")) << plan.warnings[0].message;
  EXPECT_EQ(plan.warnings[0].requested, "native");
  EXPECT_EQ(verdict(plan, "stub_reference").kind, VerdictKind::eligible);

  const auto refused = plan_of(stubs, one(nvfp4_scheme()), strictly(prefer("native")));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::fallback_refused);
  EXPECT_TRUE(mentions(refused.error().details.at(0), "M 33 and up"));
}

TEST_F(ThreeGears, ABackendWithoutAKernelLeavesTheWholeList) {
  const Plan plan = plan_of(stubs, one(nvfp4_scheme()), prefer("marlin")).value();
  EXPECT_EQ(served(plan), "stub_decode 1..16, stub_general 17..");
  ASSERT_EQ(codes(plan), std::vector<std::string>{"backend_not_covered"});
  EXPECT_EQ(plan.warnings[0].family, "nvfp4_w4a4");
  EXPECT_EQ(plan.warnings[0].requested, "marlin");
  EXPECT_EQ(plan.warnings[0].layers, 1);
  EXPECT_TRUE(plan.unused.empty()) << "a fallback is no unused name";
  EXPECT_EQ(plan_of(stubs, one(nvfp4_scheme()), strictly(prefer("marlin"))).error().code, ErrorCode::fallback_refused);
}

TEST_F(ThreeGears, ABackendWhoseKernelsAreAllRuledOutLeavesTheWholeList) {
  decode->contract.k.multiple = 256;
  const Plan plan = plan_of(stubs, one(nvfp4_scheme(), 512, 1824), prefer("native")).value();
  EXPECT_EQ(served(plan), "stub_general 1..");
  ASSERT_EQ(codes(plan), (std::vector<std::string>{"backend_not_usable", "emulation"}));
  EXPECT_TRUE(mentions(plan.warnings[0].message, "256")) << plan.warnings[0].message;
  EXPECT_EQ(verdict(plan, "stub_decode").stage, Stage::layer);
  EXPECT_EQ(verdict(plan, "stub_decode").field, "k");
  EXPECT_EQ(verdict(plan, "stub_decode").found, "1824");
}

TEST_F(ThreeGears, SingleKernelIsTheFirstThatServesAll) {
  Policy policy;
  policy.single_kernel = true;
  EXPECT_EQ(served(plan_of(stubs, one(nvfp4_scheme()), policy).value()), "stub_decode 1..");
  decode->contract.m.max = 16;
  const Plan plan = plan_of(stubs, one(nvfp4_scheme()), policy).value();
  EXPECT_EQ(served(plan), "stub_general 1..");
  EXPECT_EQ(verdict(plan, "stub_decode").stage, Stage::policy);
  EXPECT_EQ(verdict(plan, "stub_decode").field, "single_kernel");
  EXPECT_TRUE(mentions(verdict(plan, "stub_decode").reason, "M 1..16"));
}

TEST_F(ThreeGears, AForcedKernelStandsAlone) {
  Policy policy = prefer("native");
  policy.force_kernel = "stub_reference";
  const Plan plan = plan_of(stubs, one(nvfp4_scheme()), policy).value();
  EXPECT_EQ(served(plan), "stub_reference 1..");
  EXPECT_EQ(verdict(plan, "stub_decode").field, "kernel");
  floor->contract.n.max = 256;
  const auto refused = plan_of(stubs, one(nvfp4_scheme()), policy);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::no_kernel);
  EXPECT_TRUE(mentions(join(refused.error().details, "\n"), "256"));
}

TEST_F(ThreeGears, AForcedKernelOfAnotherFamilySaysSo) {
  stubs.add(Family::fp8_w8a8, "stub_fp8", "native");
  Policy policy;
  policy.force_kernel = "stub_fp8";
  const auto refused = plan_of(stubs, one(nvfp4_scheme()), policy);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::no_kernel);
  EXPECT_TRUE(mentions(join(refused.error().details, "\n"), "stub_fp8: is not registered for nvfp4_w4a4"));
}

TEST_F(ThreeGears, DisabledByKernelBackendFamilyOrPattern) {
  Policy policy;
  for (const char* item : {"stub_decode", "native", "stub_dec*", "*ative"}) {
    policy.disable = {item};
    const Plan plan = plan_of(stubs, one(nvfp4_scheme()), policy).value();
    EXPECT_EQ(served(plan), "stub_general 1..") << item;
    EXPECT_EQ(verdict(plan, "stub_decode").stage, Stage::policy);
    EXPECT_EQ(verdict(plan, "stub_decode").field, "disable");
    EXPECT_TRUE(mentions(verdict(plan, "stub_decode").reason, item));
    EXPECT_TRUE(plan.unused.empty());
  }
  for (const char* item : {"nvfp4_w4a4", "nvfp4*", "*"}) {
    policy.disable = {item};
    EXPECT_EQ(plan_of(stubs, one(nvfp4_scheme()), policy).error().code, ErrorCode::no_kernel) << item;
  }
}

TEST_F(ThreeGears, ADisabledKernelOfTheNamedBackendIsNotUsable) {
  Policy policy = prefer("native");
  policy.disable = {"stub_decode"};
  const Plan plan = plan_of(stubs, one(nvfp4_scheme()), policy).value();
  EXPECT_EQ(served(plan), "stub_general 1..");
  EXPECT_EQ(codes(plan).front(), "backend_not_usable");
  EXPECT_TRUE(mentions(plan.warnings[0].message, "--disable stub_decode"));
}

// ---- layouts --------------------------------------------------------------------------------------------------------

TEST_F(ThreeGears, OnePackedLayoutBesideTheCheckpoint) {
  decode->layout = stubs.layout("rows16");
  general->layout = stubs.layout("tile64");
  std::vector<LayerSpec> rows = one(nvfp4_scheme());
  rows.push_back(rows[0]);
  rows[1].kind = LayerKind::experts;
  rows[1].experts = 8;
  const Plan plan = plan_of(stubs, rows).value();
  EXPECT_EQ(served(plan), "stub_decode 1..16, stub_reference 17..");
  const Verdict& other = verdict(plan, "stub_general");
  EXPECT_EQ(other.kind, VerdictKind::rejected);
  EXPECT_EQ(other.stage, Stage::policy);
  EXPECT_EQ(other.field, "layout");
  EXPECT_EQ(other.found, "tile64");
  EXPECT_EQ(other.wanted, "rows16");
  EXPECT_EQ(plan.layers[0].decision->second_layout_bytes, static_cast<uint64_t>(kPackedBytes));
  EXPECT_EQ(plan.layers[1].decision->second_layout_bytes, static_cast<uint64_t>(8 * kPackedBytes));
  EXPECT_EQ(plan.layers[0].decision->prepare_peak_bytes, static_cast<uint64_t>(kPackedBytes));
}

TEST_F(ThreeGears, KernelsThatShareALayoutShareTheBytes) {
  general->layout = decode->layout = stubs.layout("rows16");
  const Plan plan = plan_of(stubs, one(nvfp4_scheme())).value();
  EXPECT_EQ(served(plan), "stub_decode 1..16, stub_general 17..");
  EXPECT_EQ(plan.layers[0].decision->second_layout_bytes, static_cast<uint64_t>(kPackedBytes));
}

TEST_F(ThreeGears, WithoutAPackedKernelThereIsNoSecondLayout) {
  decode->layout = stubs.layout("rows16");
  Policy policy;
  policy.disable = {"native"};
  EXPECT_EQ(plan_of(stubs, one(nvfp4_scheme()), policy).value().layers[0].decision->second_layout_bytes, 0u);
}

TEST_F(ThreeGears, TheNamedBackendBringsItsLayout) {
  decode->layout = stubs.layout("rows16");
  general->layout = stubs.layout("tile64");
  const Plan plan = plan_of(stubs, one(nvfp4_scheme()), prefer("emulation")).value();
  EXPECT_EQ(served(plan), "stub_general 1..");
}

// ---- arithmetic -----------------------------------------------------------------------------------------------------

TEST_F(ThreeGears, HigherPrecisionIsAllowedAndSaid) {
  decode->activation = ActivationUse::float16;
  decode->accumulator = "int32";
  const Plan plan = plan_of(stubs, one(nvfp4_scheme())).value();
  const Decision& decision = *plan.layers[0].decision;
  EXPECT_EQ(served(plan), "stub_decode 1..16, stub_general 17..");
  EXPECT_EQ(decision.ranges[0].activation, "bf16");
  EXPECT_EQ(decision.ranges[1].activation, "nvfp4");
  EXPECT_EQ(decision.differs, "activation_upgraded");
  EXPECT_EQ(decision.weight_arithmetic, "e2m1");
  EXPECT_EQ(decision.activation_arithmetic, "bf16");
  EXPECT_EQ(decision.accumulator, "int32");
  ASSERT_EQ(codes(plan), std::vector<std::string>{"activation_upgraded"});
  EXPECT_TRUE(mentions(plan.warnings[0].message, "bf16 instead of nvfp4 for M 1..16")) << plan.warnings[0].message;
}

TEST_F(ThreeGears, ExactRefusesHigherPrecision) {
  decode->activation = ActivationUse::float16;
  Policy policy;
  policy.arithmetic = Arithmetic::exact;
  const Plan plan = plan_of(stubs, one(nvfp4_scheme()), policy).value();
  EXPECT_EQ(served(plan), "stub_general 1..");
  EXPECT_EQ(plan.layers[0].decision->differs, "");
  EXPECT_EQ(plan.layers[0].decision->activation_arithmetic, "nvfp4");
  const Verdict& refused = verdict(plan, "stub_decode");
  EXPECT_EQ(refused.stage, Stage::policy);
  EXPECT_EQ(refused.field, "arithmetic");
  EXPECT_EQ(refused.found, "bf16");
  EXPECT_EQ(refused.wanted, "nvfp4");
}

TEST_F(ThreeGears, WeightOnlyKernelsAreExactWhereTheCheckpointIsWeightOnly) {
  Kernel& kernel = stubs.add(Family::nvfp4_w4a16, "stub_w4a16", "native");
  kernel.activation = ActivationUse::float16;
  Policy policy;
  policy.arithmetic = Arithmetic::exact;
  policy.dtype = DType::f16;
  const Plan plan = plan_of(stubs, one(nvfp4_w4a16_scheme()), policy).value();
  EXPECT_EQ(plan.layers[0].decision->differs, "");
  EXPECT_EQ(plan.layers[0].decision->ranges[0].activation, "fp16");
  EXPECT_TRUE(plan.warnings.empty());
}

TEST(Arithmetic, WordsOfActivations) {
  const auto word = [](const Scheme& scheme) {
    StubRegistry stubs;
    stubs.add(family_of(scheme), "k", "native");
    return std::string(plan_of(stubs, one(scheme)).value().layers[0].decision->ranges[0].activation);
  };
  EXPECT_EQ(word(nvfp4_scheme()), "nvfp4");
  EXPECT_EQ(word(nvfp4_w4a16_scheme()), "bf16");
  EXPECT_EQ(word(mxfp4_scheme()), "mxfp4");
  EXPECT_EQ(word(mxfp8_scheme()), "mxfp8");
  EXPECT_EQ(word(mx_scheme(Format::e2m3, Storage::fp6_bytes, Format::e2m3)), "mxfp6");
  EXPECT_EQ(word(fp8_channel_scheme()), "fp8");
  EXPECT_EQ(word(fp8_block_scheme()), "fp8");
  EXPECT_EQ(word(int8_scheme()), "int8");
  EXPECT_EQ(word(awq_scheme(128)), "bf16");
  EXPECT_EQ(word(float_scheme()), "bf16");
}

// ---- quarantines ----------------------------------------------------------------------------------------------------

struct Quarantined : ThreeGears {
  std::vector<LayerSpec> rows = one(nvfp4_scheme());
  Store store;
  void quarantine(const Kernel& kernel, int64_t m_min, int64_t m_max) {
    store.quarantines.push_back(
        {std::string(kernel.name), kernel.version, layer_class(rows[0]), "BF16", m_min, m_max, "row 3 is off"});
  }
  Result<Plan> plan(Policy policy = {}) { return plan_of(stubs, rows, std::move(policy), here(), store); }
};

TEST_F(Quarantined, TakesTheRangeAway) {
  quarantine(*general, 64, 0);
  const Plan result = plan().value();
  EXPECT_EQ(served(result), "stub_decode 1..16, stub_general 17..63, stub_reference 64..");
  ASSERT_EQ(codes(result), std::vector<std::string>{"quarantined"});
  EXPECT_TRUE(mentions(result.warnings[0].message, "stub_general for M 64 and up: row 3 is off"));
  EXPECT_EQ(verdict(result, "stub_general").kind, VerdictKind::selected);
}

TEST_F(Quarantined, WithoutAnyRangeLeftItIsRejectedAtSelfCheck) {
  quarantine(*decode, 1, 16);
  quarantine(*decode, 17, 0);
  const Plan result = plan().value();
  EXPECT_EQ(served(result), "stub_general 1..");
  EXPECT_EQ(verdict(result, "stub_decode").stage, Stage::self_check);
  EXPECT_TRUE(mentions(verdict(result, "stub_decode").reason, "row 3 is off"));
}

TEST_F(Quarantined, ConcernsThisKernelVersionClassAndDtypeOnly) {
  quarantine(*decode, 1, 0);
  const Quarantine good = store.quarantines[0];
  for (int field = 0; field < 5; ++field) {
    Quarantine other = good;
    if (field == 0) other.kernel = "stub_general2";
    if (field == 1) other.kernel_version = 2;
    if (field == 2) other.layer_class += "x";
    if (field == 3) other.dtype = "F16";
    if (field == 4) other.m_min = 9, other.m_max = 8;
    store.quarantines = {other};
    EXPECT_EQ(served(plan().value()), "stub_decode 1..16, stub_general 17..") << field;
  }
  store.quarantines = {good};
  EXPECT_EQ(served(plan().value()), "stub_general 1..");
}

TEST_F(Quarantined, NothingHealthyLeftIsAnErrorOfItsOwn) {
  quarantine(*decode, 1, 0);
  quarantine(*general, 1, 0);
  quarantine(*floor, 1, 8);
  const auto refused = plan();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::self_check);
  EXPECT_TRUE(mentions(refused.error().found, "M 1..8")) << refused.error().found;
  EXPECT_TRUE(mentions(join(refused.error().details, "\n"), "quarantined: stub_reference for M 1..8"));
}

TEST_F(Quarantined, DoesNotTakeTheBlameForOtherGates) {
  quarantine(*decode, 1, 0);
  general->contract.n.max = floor->contract.n.max = 256;
  decode->contract.k.multiple = 4096;
  EXPECT_EQ(plan().error().code, ErrorCode::no_kernel);
}

TEST_F(Quarantined, TheNamedBackendFallsBackThere) {
  quarantine(*decode, 17, 0);
  const Plan result = plan(prefer("native")).value();
  EXPECT_EQ(served(result), "stub_decode 1..16, stub_general 17..");
  EXPECT_EQ(codes(result), (std::vector<std::string>{"backend_not_usable", "quarantined"}));
  EXPECT_TRUE(mentions(warning(result, "backend_not_usable").message, "quarantined for M 17 and up"));
}

TEST_F(Quarantined, SingleKernelMovesAsAWhole) {
  quarantine(*decode, 100, 200);
  Policy policy;
  policy.single_kernel = true;
  const Plan result = plan(policy).value();
  EXPECT_EQ(served(result), "stub_general 1..");
  EXPECT_EQ(verdict(result, "stub_decode").stage, Stage::self_check);
}

// ---- contracts and batch sizes --------------------------------------------------------------------------------------

TEST_F(ThreeGears, LimitOfOutputElementsBoundsM) {
  decode->contract.max_output_elements = 512 * 4 + 1;
  general->contract.max_output_elements = 511;
  const Plan plan = plan_of(stubs, one(nvfp4_scheme())).value();
  EXPECT_EQ(served(plan), "stub_decode 1..4, stub_reference 5..");
  EXPECT_EQ(verdict(plan, "stub_general").stage, Stage::layer);
  EXPECT_EQ(verdict(plan, "stub_general").field, "m");
}

TEST_F(ThreeGears, MultiplesOfMCannotServeARange) {
  decode->contract.m.multiple = 8;
  const Plan plan = plan_of(stubs, one(nvfp4_scheme())).value();
  EXPECT_EQ(served(plan), "stub_general 1..");
  EXPECT_EQ(verdict(plan, "stub_decode").field, "m");
  EXPECT_EQ(verdict(plan, "stub_decode").wanted, "a multiple of 8");
}

TEST_F(ThreeGears, ABatchSizeThatNothingServesIsNoKernel) {
  for (Kernel* kernel : {decode, general, floor}) kernel->contract.m.max = 100;
  const auto refused = plan_of(stubs, one(nvfp4_scheme()));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::no_kernel);
  EXPECT_TRUE(mentions(refused.error().found, "M 101 and up"));
}

TEST_F(ThreeGears, WorkspaceOfTheKernelOfEachBatchSize) {
  general->workspace_bytes = [](const LayerSpec&, int64_t m, int threads) { return 1000 * m * threads; };
  Policy policy;
  policy.batch = {64, 1, 64, 16};
  policy.threads = 3;
  const Plan plan = plan_of(stubs, one(nvfp4_scheme()), policy).value();
  EXPECT_EQ(plan.layers[0].decision->workspace_bytes,
            (std::vector<std::pair<int64_t, int64_t>>{{1, 10}, {16, 160}, {64, 192000}}));
}

TEST_F(ThreeGears, RunnableOnlyWhereTheDeviceIs) {
  EXPECT_TRUE(plan_of(stubs, one(nvfp4_scheme())).value().layers[0].decision->runnable);
  DeviceProfile absent = here();
  absent.present = false;
  EXPECT_FALSE(plan_of(stubs, one(nvfp4_scheme()), {}, absent).value().layers[0].decision->runnable);
}

TEST(Select, AnEmptyListIsNoKernel) {
  StubRegistry stubs;
  stubs.add(Family::fp8_w8a8, "k", "native");
  const auto refused = plan_of(stubs, one(nvfp4_scheme()));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::no_kernel);
  EXPECT_TRUE(mentions(join(refused.error().details, "\n"), "no kernel is registered for nvfp4_w4a4 on cpu"));
}

}  // namespace
}  // namespace gearshift
