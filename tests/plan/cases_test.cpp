// Situations that broke other systems, planned with stub kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/text.h"
#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

Quarantine wrong_for(const Kernel& kernel, const LayerSpec& layer) {
  return {std::string(kernel.name), kernel.version, layer_class(layer), "BF16", 1, 0, "every row is off"};
}

TEST(Case10, OutputsBeyondTheKernelsOffsetsGoToTheNextOne) {
  StubRegistry stubs;
  stubs.add(Family::int8_w8a8, "stub_int32_offsets", "native").contract.max_output_elements = (int64_t{1} << 31) - 1;
  stubs.add(Family::int8_w8a8, "stub_int64_offsets", "native");
  const Plan planned = plan_of(stubs, {layer_of("l", int8_scheme(), 28672, 16)}).value();
  EXPECT_EQ(served(planned), "stub_int32_offsets 1..74898, stub_int64_offsets 74899..");
}

TEST(Case03, KOffTheKernelsStep) {
  StubRegistry honest(Platform::rocm), dishonest(Platform::rocm);
  honest.add(Family::mxfp4, "stub_tile256", "native").contract.k.multiple = 256;
  Kernel& liar = dishonest.add(Family::mxfp4, "stub_tile256", "native");
  liar.contract.k.multiple = 32;
  Store store;
  for (StubRegistry* stubs : {&honest, &dishonest}) stubs->add(Family::mxfp4, "stub_reference", "reference");
  const DeviceProfile gfx950 = elsewhere("gfx950", Platform::rocm);
  for (int64_t k : {1664, 1824, 1856, 1792}) {
    const LayerSpec layer = layer_of("l", mxfp4_scheme(), 512, k);
    const bool good = k == 1792;
    const Plan planned = plan_of(honest, {layer}, {}, gfx950).value();
    EXPECT_EQ(served(planned), good ? "stub_tile256 1.." : "stub_reference 1..") << k;
    if (!good) {
      store.quarantines.push_back(wrong_for(liar, layer));
      EXPECT_EQ(verdict(planned, "stub_tile256").field, "k");
      EXPECT_EQ(verdict(planned, "stub_tile256").found, std::to_string(k));
      EXPECT_TRUE(mentions(verdict(planned, "stub_tile256").wanted, "256"));
    }
  }
  for (int64_t k : {1664, 1824, 1856, 1792}) {
    const Plan planned = plan_of(dishonest, {layer_of("l", mxfp4_scheme(), 512, k)}, {}, gfx950, store).value();
    EXPECT_EQ(served(planned), k == 1792 ? "stub_tile256 1.." : "stub_reference 1..") << k;
    if (k != 1792) {
      EXPECT_EQ(verdict(planned, "stub_tile256").stage, Stage::self_check);
      EXPECT_EQ(codes(planned), (std::vector<std::string>{"emulation", "quarantined"}));
    }
  }
}

TEST(Case06, KernelForOneGroupSize) {
  StubRegistry stubs;
  Contract& contract = stubs.add(Family::mixed_precision, "stub_g128", "native").contract;
  contract.groupings = {Grouping::Kind::group};
  contract.groups = {128};
  stubs.add(Family::mixed_precision, "stub_any", "marlin");
  for (int64_t group : {32, 64, 128, 256, -1}) {
    const Plan plan = plan_of(stubs, {layer_of("l", awq_scheme(group), 4096, 4096)}).value();
    EXPECT_EQ(served(plan), group == 128 ? "stub_g128 1.." : "stub_any 1..") << group;
    const Verdict& narrow = verdict(plan, "stub_g128");
    if (group == 128) continue;
    EXPECT_EQ(narrow.stage, Stage::layer);
    EXPECT_EQ(narrow.field, group < 0 ? "groupings" : "groups");
    if (group > 0) {
      EXPECT_EQ(narrow.found, std::to_string(group));
    }
  }
}

TEST(Case16, DeclaredDevicesDecide) {
  StubRegistry stubs(Platform::cuda);
  // Answers yes for any capability, as a probe that ignores it; the code that is there decides.
  Kernel& careless = stubs.add(Family::int8_w8a8, "stub_int8", "cutlass");
  careless.contract.targets = {"sm_80", "sm_90"};
  careless.probe = [](const LayerSpec&, const DeviceProfile&, DType) { return std::optional<Refusal>(); };
  stubs.add(Family::int8_w8a8, "stub_int8_next", "triton");
  const Plan plan = plan_of(stubs, {layer_of("l", int8_scheme(), 4096, 4096)}, {}, elsewhere("sm_120")).value();
  EXPECT_EQ(served(plan), "stub_int8_next 1..");
  EXPECT_EQ(verdict(plan, "stub_int8").stage, Stage::build) << "never the device's fault";
  EXPECT_EQ(verdict(plan, "stub_int8").wanted, "sm_120");
  EXPECT_TRUE(mentions(verdict(plan, "stub_int8").found, "sm_90"));
}

TEST(Case17, ARevisionThatNobodyHasVerified) {
  StubRegistry stubs(Platform::cuda);
  Contract& contract = stubs.add(Family::fp8_block_w8a8, "stub_block", "native").contract;
  contract.archs = {"sm_100", "sm_103"};
  contract.verified = {"sm_100"};
  const LayerSpec layer = layer_of("l", fp8_block_scheme(), 7168, 2048);
  const auto reason = [&](const char* arch) {
    return verdict(plan_of(stubs, {layer}, {}, elsewhere(arch)).value(), "stub_block").reason;
  };
  EXPECT_TRUE(mentions(reason("sm_103"), "not verified on sm_103")) << reason("sm_103");
  EXPECT_FALSE(mentions(reason("sm_100"), "not verified"));

  // Without a check on the device --strict takes the next one, or none.
  const auto refused = plan_of(stubs, {layer}, strictly({}), elsewhere("sm_103"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(exit_code(refused.error().code), 3);
  stubs.add(Family::fp8_block_w8a8, "stub_next", "triton");
  const Plan strict = plan_of(stubs, {layer}, strictly({}), elsewhere("sm_103")).value();
  EXPECT_EQ(served(strict), "stub_next 1..");
  EXPECT_EQ(verdict(strict, "stub_block").stage, Stage::self_check);
  EXPECT_EQ(verdict(strict, "stub_block").wanted, "sm_100");
  EXPECT_EQ(served(plan_of(stubs, {layer}, strictly({}), elsewhere("sm_100")).value()), "stub_block 1..");
  DeviceProfile present = elsewhere("sm_103");
  present.present = true;
  EXPECT_EQ(served(plan_of(stubs, {layer}, strictly({}), present).value()), "stub_block 1..")
      << "it is checked there first";
  Store proven;
  proven.proofs = {{"stub_block", 1, "", layer_class(layer), "BF16", 1, 1}};
  EXPECT_EQ(served(plan_of(stubs, {layer}, strictly({}), elsewhere("sm_103"), proven).value()), "stub_block 1..");
}

TEST(Case17, AKernelThatHasRunNowhereIsVerifiedNowhere) {
  StubRegistry stubs(Platform::cuda);
  Kernel& kernel = stubs.add(Family::fp8_block_w8a8, "stub_block", "native");
  kernel.contract.verified = {};
  const LayerSpec layer = layer_of("l", fp8_block_scheme(), 7168, 2048);
  const auto plan = [&](const DeviceProfile& device, Policy policy = {}) {
    return plan_of(stubs, {layer}, std::move(policy), device);
  };
  EXPECT_TRUE(mentions(verdict(plan(elsewhere("sm_100")).value(), "stub_block").reason, "not verified on sm_100"));
  EXPECT_FALSE(plan(elsewhere("sm_100"), strictly({})).ok());
  // What the host does for a device is no matter of the device; nothing of another engine runs here at all.
  kernel.platform = Platform::cpu;
  EXPECT_FALSE(mentions(verdict(plan(elsewhere("gfx942")).value(), "stub_block").reason, "not verified"));
  kernel.platform = Platform::cuda;
  kernel.layout = &engine_layout;
  EXPECT_FALSE(mentions(verdict(plan(elsewhere("sm_100")).value(), "stub_block").reason, "not verified"));
}

TEST(Case18, OlderThanTheKernel) {
  StubRegistry stubs(Platform::cuda);
  Contract& contract = stubs.add(Family::mixed_precision, "stub_a", "marlin").contract;
  contract.archs = {"sm_75", "sm_80"};
  contract.dtypes = {DType::f16};
  stubs.add(Family::mixed_precision, "stub_floor", "triton");
  Policy fp16;
  fp16.dtype = DType::f16;
  const LayerSpec layer = layer_of("l", awq_scheme(128), 4096, 4096);
  EXPECT_EQ(served(plan_of(stubs, {layer}, fp16, elsewhere("sm_75")).value()), "stub_a 1..");
  const Plan old = plan_of(stubs, {layer}, fp16, elsewhere("sm_70")).value();
  EXPECT_EQ(served(old), "stub_floor 1..");
  EXPECT_EQ(verdict(old, "stub_a").stage, Stage::device);
  const Plan bf16 = plan_of(stubs, {layer}, {}, elsewhere("sm_75")).value();
  EXPECT_EQ(served(bf16), "stub_floor 1..");
  EXPECT_EQ(verdict(bf16, "stub_a").field, "dtypes");
}

TEST(Case21, WorksToFourRowsThenNot) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::mixed_precision, "stub_rows4", "exllama").contract.m.max = 4;
  stubs.add(Family::mixed_precision, "stub_b", "marlin").contract.archs = {"sm_80"};
  stubs.add(Family::mixed_precision, "stub_floor", "emulation");
  const Plan plan = plan_of(stubs, {layer_of("l", awq_scheme(128), 5120, 5120)}, {}, elsewhere("sm_75")).value();
  EXPECT_EQ(served(plan), "stub_rows4 1..4, stub_floor 5..");
  const Decision& decision = *plan.layers[0].decision;
  EXPECT_EQ(range_for(decision, 4).kernel->name, "stub_rows4");
  EXPECT_EQ(range_for(decision, 5).kernel->name, "stub_floor");
  EXPECT_EQ(range_for(decision, 512).kernel->name, "stub_floor");
  EXPECT_TRUE(mentions(verdict(plan, "stub_floor").reason, "a large slowdown")) << verdict(plan, "stub_floor").reason;
  EXPECT_FALSE(mentions(verdict(plan, "stub_rows4").reason, "slowdown"));
}

TEST(Case22, AProbeThatThrows) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::nvfp4_w4a4, "stub_missing", "flashinfer_cutlass").probe = [](const LayerSpec&, const DeviceProfile&,
                                                                                 DType) -> std::optional<Refusal> {
    throw std::runtime_error("libfancy.so.2: cannot open shared object file");
  };
  stubs.add(Family::nvfp4_w4a4, "stub_odd", "b12x").probe = [](const LayerSpec&, const DeviceProfile&,
                                                               DType) -> std::optional<Refusal> { throw 42; };
  stubs.add(Family::nvfp4_w4a4, "stub_good", "cutlass");
  stubs.add(Family::nvfp4_w4a4, "stub_other", "marlin");
  const Plan plan = plan_of(stubs, {layer_of("l", nvfp4_scheme(), 4096, 4096)}, {}, elsewhere("sm_120")).value();
  EXPECT_EQ(served(plan), "stub_good 1..");
  EXPECT_EQ(verdict(plan, "stub_missing").stage, Stage::build);
  EXPECT_TRUE(mentions(verdict(plan, "stub_missing").reason, "optional library missing"));
  EXPECT_TRUE(mentions(verdict(plan, "stub_missing").reason, "libfancy.so.2"));
  EXPECT_EQ(verdict(plan, "stub_odd").kind, VerdictKind::rejected);
  EXPECT_EQ(verdict(plan, "stub_other").kind, VerdictKind::eligible);
}

TEST(Case23, AHelperWithoutDeviceCode) {
  StubRegistry stubs(Platform::cuda);
  Contract& contract = stubs.add(Family::mxfp8, "stub_mxfp8", "cutlass").contract;
  contract.targets = {"sm_100", "sm_120"};
  contract.helpers = {{"an activation quantizer", "quantize_mxfp8", {"sm_100"}}};
  stubs.add(Family::mxfp8, "stub_floor", "emulation");
  const LayerSpec layer = layer_of("l", mxfp8_scheme(), 2048, 4096);
  const Plan lacking = plan_of(stubs, {layer}, {}, elsewhere("sm_120")).value();
  EXPECT_EQ(served(lacking), "stub_floor 1..");
  EXPECT_EQ(verdict(lacking, "stub_mxfp8").stage, Stage::build);
  EXPECT_EQ(verdict(lacking, "stub_mxfp8").field, "helpers");
  EXPECT_TRUE(mentions(verdict(lacking, "stub_mxfp8").reason, "quantize_mxfp8"));
  EXPECT_EQ(served(plan_of(stubs, {layer}, {}, elsewhere("sm_100")).value()), "stub_mxfp8 1..");
  contract.helpers.push_back({"an activation quantizer", "quantize_mxfp8_v2", {"sm_120"}});
  EXPECT_EQ(served(plan_of(stubs, {layer}, {}, elsewhere("sm_120")).value()), "stub_mxfp8 1..");
}

TEST(Case24, SymbolPresentCodeAbsent) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::fp8_w8a8, "stub_fp8", "cutlass").contract.targets = {"sm_90", "sm_121"};
  stubs.add(Family::fp8_w8a8, "stub_floor", "emulation");
  const LayerSpec layer = layer_of("l", fp8_channel_scheme(), 4096, 4096);
  const Plan plan = plan_of(stubs, {layer}, {}, elsewhere("sm_110")).value();
  EXPECT_EQ(served(plan), "stub_floor 1..");
  EXPECT_EQ(verdict(plan, "stub_fp8").stage, Stage::build);
  EXPECT_EQ(verdict(plan, "stub_fp8").field, "targets");
  EXPECT_TRUE(mentions(verdict(plan, "stub_fp8").reason, "sm_110"));
  EXPECT_EQ(served(plan_of(stubs, {layer}, {}, elsewhere("sm_90")).value()), "stub_fp8 1..");
}

TEST(Case24, NoBuildIsAskedForWhereNoneWouldHelp) {
  StubRegistry stubs(Platform::cuda);
  Contract& contract = stubs.add(Family::fp8_w8a8, "stub_fp8", "cutlass").contract;
  contract.targets = {"none"};
  contract.archs = {"sm_90"};
  stubs.add(Family::fp8_w8a8, "stub_floor", "emulation");
  const LayerSpec layer = layer_of("l", fp8_channel_scheme(), 4096, 4096);
  const auto stage = [&](const char* arch) {
    return verdict(plan_of(stubs, {layer}, {}, elsewhere(arch)).value(), "stub_fp8").stage;
  };
  EXPECT_EQ(stage("sm_90"), Stage::build);
  EXPECT_EQ(stage("sm_121"), Stage::device) << "it has no code for sm_121 in any build";
}

TEST(Case25, TheDeviceThatLaunchesDecides) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::nvfp4_w4a4, "stub_sm103", "cutlass").contract.archs = {"sm_103"};
  stubs.add(Family::nvfp4_w4a4, "stub_sm120", "b12x").contract.archs = {"sm_120"};
  DeviceProfile device = elsewhere("sm_103");
  device.other_identity = "NVIDIA GeForce RTX 5090 (sm_120)";
  const Plan plan = plan_of(stubs, {layer_of("l", nvfp4_scheme(), 8192, 8192)}, {}, device).value();
  EXPECT_EQ(served(plan), "stub_sm103 1..");
  EXPECT_EQ(plan.device.other_identity, device.other_identity);
}

TEST(Case26, TwoKindsOfCardsInOneGroup) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::nvfp4_w4a4, "stub_native", "cutlass").contract.archs = {"sm_120"};
  stubs.add(Family::nvfp4_w4a4, "stub_weight_only", "marlin").activation = ActivationUse::float16;
  Kernel& emulation = stubs.add(Family::nvfp4_w4a4, "stub_emulation", "emulation");
  stubs.add(Family::bf16, "stub_bf16", "torch");
  PlanRequest request;
  request.layers = {layer_of("a", nvfp4_scheme(), 8192, 4096), layer_of("b", float_scheme(), 64, 64)};
  request.registry = &stubs.registry();
  const std::vector<DeviceProfile> cards = {elsewhere("sm_89"), elsewhere("sm_120")};

  const GroupPlan higher = plan_group(request, cards).value();
  ASSERT_EQ(higher.plans.size(), 2u);
  for (const Plan& plan : higher.plans) EXPECT_EQ(served(plan), "stub_weight_only 1..");
  EXPECT_EQ(higher.activations, (std::vector<std::string>{"bf16", "bf16"}));
  EXPECT_EQ(higher.plans[0].device.arch, "sm_89");

  request.policy.arithmetic = Arithmetic::exact;
  const GroupPlan exact = plan_group(request, cards).value();
  EXPECT_EQ(served(exact.plans[0]), "stub_emulation 1..");
  EXPECT_EQ(served(exact.plans[1]), "stub_native 1..");
  EXPECT_EQ(exact.activations[0], "nvfp4");
  emulation.contract.archs = {"sm_120"};
  const auto refused = plan_group(request, cards);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(exit_code(refused.error().code), 3);

  request.policy.arithmetic = Arithmetic::higher;
  const GroupPlan alike = plan_group(request, {elsewhere("sm_120"), elsewhere("sm_120")}).value();
  EXPECT_EQ(served(alike.plans[0]), "stub_native 1..") << "no reason to give up precision of the checkpoint";
}

TEST(Case28, OnlyTheTinyLayerLeaves) {
  for (const auto& [scheme, family, tiny] : {std::tuple(fp8_block_scheme(), Family::fp8_block_w8a8, int64_t{16}),
                                             std::tuple(mxfp8_scheme(), Family::mxfp8, int64_t{32})}) {
    StubRegistry stubs(Platform::cuda);
    stubs.add(family, "stub_n128", "deep_gemm").contract.n.min = 128;
    stubs.add(family, "stub_any", "triton");
    for (const char* arch : {"sm_90", "sm_120"}) {
      const Plan plan =
          plan_of(stubs, {layer_of("a", scheme, tiny, 1024), layer_of("b", scheme, 6144, 1024)}, {}, elsewhere(arch))
              .value();
      EXPECT_EQ(served(plan, 0), "stub_any 1..");
      EXPECT_EQ(served(plan, 1), "stub_n128 1..");
      EXPECT_EQ(verdict(plan, "stub_n128").found, std::to_string(tiny));
    }
  }
}

TEST(Case73, BatchInvariantTakesWhatPromisesIt) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::fp8_block_w8a8, "stub_switching", "deep_gemm");
  stubs.add(Family::fp8_block_w8a8, "stub_invariant", "triton").contract.bits_same_for_any_m = true;
  stubs.line(Family::fp8_block_w8a8).m_min = 32;
  Contract& rows = stubs.add(Family::fp8_block_w8a8, "stub_rows", "native").contract;
  rows.bits_same_for_any_m = true;
  rows.m.max = 16;
  Policy policy;
  policy.batch_invariant = true;
  const LayerSpec layer = layer_of("l", fp8_block_scheme(), 4096, 4096);
  const Plan plan = plan_of(stubs, {layer}, policy, elsewhere("sm_90")).value();
  EXPECT_EQ(served(plan), "stub_invariant 1..");
  for (const char* refused : {"stub_switching", "stub_rows"}) {
    EXPECT_EQ(verdict(plan, refused).stage, Stage::policy);
    EXPECT_EQ(verdict(plan, refused).field, "batch_invariant");
  }
  Store tuned;
  for (const auto& [kernel, us] : {std::pair("stub_invariant", 90.0), std::pair("stub_switching", 1.0)})
    tuned.times.push_back({kernel, 1, "", "checkpoint/1", layer_class(layer), "BF16", "eager", 1, 1, us, us, us, 100});
  EXPECT_EQ(plan_of(stubs, {layer}, policy, elsewhere("sm_90"), tuned).value().hash, plan.hash)
      << "tuning changes no bit";
}

TEST(Case73, OneActivationScaleForAllRowsIsNeverInvariant) {
  Scheme whole = fp8_channel_scheme();
  whole.activation->granularity = Granularity::tensor;
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::fp8_w8a8, "stub_native", "cutlass").contract.bits_same_for_any_m = true;
  Policy policy;
  policy.batch_invariant = true;
  EXPECT_FALSE(plan_of(stubs, {layer_of("l", whole, 64, 64)}, policy, elsewhere("sm_90")).ok());
  EXPECT_TRUE(plan_of(stubs, {layer_of("l", fp8_channel_scheme(), 64, 64)}, policy, elsewhere("sm_90")).ok());
  Kernel& upgraded = stubs.add(Family::fp8_w8a8, "stub_weight_only", "marlin");
  upgraded.activation = ActivationUse::float16;
  upgraded.contract.bits_same_for_any_m = true;
  const Plan plan = plan_of(stubs, {layer_of("l", whole, 64, 64)}, policy, elsewhere("sm_90")).value();
  EXPECT_EQ(served(plan), "stub_weight_only 1..");
  EXPECT_EQ(verdict(plan, "stub_native").field, "batch_invariant");
}

TEST(Case29, OneAwkwardLayerMovesAlone) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::mixed_precision, "stub_k128", "machete").contract.k.multiple = 128;
  stubs.add(Family::mixed_precision, "stub_k64", "marlin").contract.k.multiple = 64;
  std::vector<LayerSpec> rows;
  for (int i = 0; i < 27; ++i)
    rows.push_back(
        layer_of("model.layers." + std::to_string(i) + ".mlp.down_proj", awq_scheme(64), 2048, i == 0 ? 10944 : 1408));
  const Plan plan = plan_of(stubs, rows, {}, elsewhere("sm_90")).value();
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(served(plan, i), i == 0 ? "stub_k64 1.." : "stub_k128 1..");
  EXPECT_EQ(verdict(plan, "stub_k128", 0).found, "10944");
  EXPECT_TRUE(mentions(verdict(plan, "stub_k128", 0).wanted, "128"));
  EXPECT_TRUE(mentions(verdict(plan, "stub_k128", 0).reason, "10944 mod 128 = 64"));
}

TEST(Case37, ANarrowedContractMovesTheLayerToTheOldTile) {
  const LayerSpec layer = layer_of("l", nvfp4_w4a16_scheme(), 160, 4096);
  StubRegistry v1, v2, v3;
  v1.add(Family::nvfp4_w4a16, "stub_tile", "native").contract.n.multiple = 16;
  for (StubRegistry* stubs : {&v2, &v3})
    stubs->add(Family::nvfp4_w4a16, "stub_tile", "native").contract.n.multiple = 64;
  v2.add(Family::nvfp4_w4a16, "stub_tile16", "native").contract.n.multiple = 16;
  for (StubRegistry* stubs : {&v1, &v2, &v3}) stubs->add(Family::nvfp4_w4a16, "stub_floor", "emulation");
  const Plan before = plan_of(v1, {layer}).value(), after = plan_of(v2, {layer}).value();
  EXPECT_EQ(served(before), "stub_tile 1..");
  EXPECT_EQ(served(after), "stub_tile16 1..");
  EXPECT_NE(before.hash, after.hash);
  EXPECT_EQ(codes(plan_of(v3, {layer}).value()), std::vector<std::string>{"emulation"});
}

TEST(Case39, WeightOnlyForActivationsThatShouldBeQuantized) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::mxfp4, "stub_w4a16", "marlin").activation = ActivationUse::float16;
  stubs.add(Family::mxfp4, "stub_floor", "emulation");
  const LayerSpec layer = layer_of("l", mxfp4_scheme(), 4096, 4096);
  const Plan higher = plan_of(stubs, {layer}, {}, elsewhere("sm_90")).value();
  EXPECT_EQ(served(higher), "stub_w4a16 1..");
  EXPECT_EQ(higher.layers[0].decision->activation_arithmetic, "bf16");
  EXPECT_EQ(higher.layers[0].decision->differs, "activation_upgraded");
  EXPECT_EQ(codes(higher), std::vector<std::string>{"activation_upgraded"});
  Policy policy;
  policy.arithmetic = Arithmetic::exact;
  const Plan exact = plan_of(stubs, {layer}, policy, elsewhere("sm_90")).value();
  EXPECT_EQ(served(exact), "stub_floor 1..");
  EXPECT_EQ(exact.layers[0].decision->activation_arithmetic, "mxfp4");
  EXPECT_EQ(codes(exact), std::vector<std::string>{"emulation"});
}

TEST(Case52, NativeWhateverTheOrder) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Policy exact;
  exact.arithmetic = Arithmetic::exact;
  const LayerSpec layer = layer_of("l", nvfp4_scheme(), 5120, 5120);
  for (const char* arch : {"sm_120", "sm_121"}) {
    std::string hash;
    for (int round = 0; round < 100; ++round) {
      StubRegistry stubs(Platform::cuda);
      Kernel& native = stubs.add(Family::nvfp4_w4a4, "stub_native", "cutlass");
      native.contract.archs = {"sm_120", "sm_121"};
      native.layout = stubs.layout("swizzled");
      for (const char* name : {"stub_marlin", "stub_humming"}) {
        Kernel& weight_only = stubs.add(Family::nvfp4_w4a4, name, "marlin");
        weight_only.activation = ActivationUse::float16;
        weight_only.layout = stubs.layout(name);
      }
      stubs.line(Family::nvfp4_w4a4).m_max = 16;
      auto& entries = stubs.list(Family::nvfp4_w4a4).entries;
      std::shuffle(entries.begin(), entries.end(), random);
      const Plan plan = plan_of(stubs, {layer}, exact, elsewhere(arch)).value();
      ASSERT_EQ(served(plan), "stub_native 1..");
      ASSERT_EQ(plan.hash, hash.empty() ? plan.hash : hash);
      hash = plan.hash;
    }
  }
}

TEST(Case54, ScopeDoesNotLeak) {
  StubRegistry stubs;
  for (const char* backend : {"native", "humming"}) {
    stubs.add(Family::nvfp4_w4a4, std::string("stub_w4a4_") + backend, backend);
    stubs.add(Family::nvfp4_w4a16, std::string("stub_w4a16_") + backend, backend);
  }
  stubs.add(Family::bf16, "stub_bf16", "torch");
  const std::vector<LayerSpec> rows = {layer_of("model.layers.0.mlp.down_proj", nvfp4_scheme(), 64, 64),
                                       layer_of("model.layers.0.mlp.up_proj", nvfp4_scheme(), 64, 64),
                                       layer_of("model.layers.0.self_attn.o_proj", nvfp4_w4a16_scheme(), 64, 64),
                                       layer_of("mtp.0.proj", float_scheme(), 64, 64)};
  Policy policy = strictly(prefer("native"));
  policy.linear.families[Family::nvfp4_w4a16] = "humming";
  policy.layers = {{"*.up_proj", "humming"}, {"draft.*", "humming"}};
  const Plan plan = plan_of(stubs, rows, policy).value();
  EXPECT_EQ(served(plan, 0), "stub_w4a4_native 1..");
  EXPECT_EQ(served(plan, 1), "stub_w4a4_humming 1..");
  EXPECT_EQ(served(plan, 2), "stub_w4a16_humming 1..");
  EXPECT_EQ(served(plan, 3), "stub_bf16 1..") << "the draft head is not quantized";
  EXPECT_EQ(plan.unused, std::vector<std::string>{"draft.*=humming"});
}

TEST(Case55, AFamilyDeniedAppearsNowhere) {
  StubRegistry stubs;
  const std::vector<Scheme> schemes = {nvfp4_scheme(), nvfp4_w4a16_scheme(), mxfp4_scheme(),
                                       mxfp8_scheme(), fp8_channel_scheme(), fp8_block_scheme(),
                                       int8_scheme(),  awq_scheme(128),      float_scheme()};
  for (const Scheme& scheme : schemes) {
    const std::string family(name(family_of(scheme)));
    stubs.add(family_of(scheme), "stub_" + family, "native");
    stubs.add(family_of(scheme), "floor_" + family, "reference");
  }
  for (const Scheme& scheme : schemes)
    for (LayerKind kind : {LayerKind::linear, LayerKind::experts}) {
      LayerSpec layer = layer_of("l", scheme, 256, 256);
      layer.kind = kind;
      layer.experts = kind == LayerKind::experts ? 2 : 0;
      const std::string family(name(layer.family));
      ASSERT_TRUE(plan_of(stubs, {layer}).ok());
      Policy by_family, by_names, forced, asked;
      by_family.disable = {family};
      by_names.disable = {"*_" + family};
      forced = by_family;
      forced.force_kernel = "stub_" + family;
      asked = by_family;
      asked.layers = {{"*", "native"}};
      for (const Policy& policy : {by_family, by_names, forced, asked}) {
        const auto refused = plan_of(stubs, {layer}, policy);
        ASSERT_FALSE(refused.ok()) << family;
        EXPECT_EQ(refused.error().code, ErrorCode::no_kernel);
        EXPECT_TRUE(mentions(join(refused.error().details, "\n"), "--disable " + policy.disable[0]));
      }
    }
}

TEST(Case56, BothGearsReadOneCopyOfTheWeights) {
  StubRegistry stubs(Platform::cuda);
  Kernel& weight_only = stubs.add(Family::nvfp4_w4a4, "stub_weight_only", "marlin");
  weight_only.activation = ActivationUse::float16;
  stubs.line(Family::nvfp4_w4a4).m_max = 7;
  Kernel& native = stubs.add(Family::nvfp4_w4a4, "stub_native", "cutlass");
  weight_only.layout = native.layout = stubs.layout("shared");
  const LayerSpec layer = layer_of("l", nvfp4_scheme(), 5120, 17408);
  const Plan higher = plan_of(stubs, {layer}, {}, elsewhere("sm_120")).value();
  EXPECT_EQ(served(higher), "stub_weight_only 1..7, stub_native 8..");
  EXPECT_EQ(higher.layers[0].decision->second_layout_bytes, static_cast<uint64_t>(kPackedBytes));
  Policy exact;
  exact.arithmetic = Arithmetic::exact;
  EXPECT_EQ(served(plan_of(stubs, {layer}, exact, elsewhere("sm_120")).value()), "stub_native 1..");
  Policy single = exact;
  single.single_kernel = true;
  EXPECT_EQ(served(plan_of(stubs, {layer}, single, elsewhere("sm_120")).value()), "stub_native 1..");
}

}  // namespace
}  // namespace gearshift
