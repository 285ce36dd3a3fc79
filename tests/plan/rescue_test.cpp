#include "plan/rescue.h"

#include <gtest/gtest.h>

#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

LayerSpec rank_of(std::string name, Scheme scheme, int64_t n, int64_t k, int64_t tp) {
  return shard(layer_of(std::move(name), std::move(scheme), n, k), tp);
}

Policy degree(int64_t tp) {
  Policy policy;
  policy.tp = tp;
  return policy;
}

const PlannedRescue& rescue(const Plan& plan, size_t row = 0) { return plan.layers.at(row).decision->rescue.value(); }

TEST(RescueTest, NoneWhereTheShardFits) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::mixed_precision, "stub_k128", "marlin").contract.k.multiple = 128;
  const LayerSpec rank = rank_of("a.down_proj", awq_scheme(128), 4096, 8192, 4);
  const Plan plan = plan_of(stubs, {rank}, degree(4), elsewhere("sm_90")).value();
  EXPECT_FALSE(plan.layers[0].decision->rescue);
  EXPECT_EQ(plan.layers[0].layer.k, 2048);
  EXPECT_EQ(plan.layers[0].layer.shard->whole->k, 8192);
}

TEST(RescueTest, TheNextKernelComesBeforePadding) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::mixed_precision, "stub_k1024", "machete").contract.k.multiple = 1024;
  stubs.add(Family::mixed_precision, "stub_k64", "marlin").contract.k.multiple = 64;
  const Plan plan =
      plan_of(stubs, {rank_of("a.down_proj", awq_scheme(64), 4096, 2 * 10944, 2)}, degree(2), elsewhere("sm_90"))
          .value();
  EXPECT_EQ(served(plan), "stub_k64 1..");
  EXPECT_FALSE(plan.layers[0].decision->rescue);
}

TEST(RescueTest, ARequestedBackendIsHonouredByPadding) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::mixed_precision, "stub_k128", "machete").contract.k.multiple = 128;
  stubs.add(Family::mixed_precision, "stub_any", "marlin");
  const LayerSpec rank = rank_of("a.down_proj", awq_scheme(32), 4096, 1376 * 8, 8);  // 1376 = 43 * 32
  Policy policy = prefer("machete");
  policy.tp = 8;
  const Plan plan = plan_of(stubs, {rank}, strictly(policy), elsewhere("sm_90")).value();
  EXPECT_EQ(served(plan), "stub_k128 1..");
  EXPECT_EQ(rescue(plan).kind, Rescue::padding);
  EXPECT_EQ(rescue(plan).k, 1408);
}

TEST(RescueTest, LayersThatEveryRankHoldsAreNotTouched) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::bf16, "stub_n64", "native").contract.n.multiple = 64;
  stubs.add(Family::bf16, "stub_floor", "emulation");
  const Plan plan =
      plan_of(stubs, {rank_of("a.mlp.gate", float_scheme(), 60, 2048, 4)}, degree(4), elsewhere("sm_90")).value();
  EXPECT_EQ(served(plan), "stub_floor 1..");
  EXPECT_FALSE(plan.layers[0].decision->rescue);
  EXPECT_EQ(plan.layers[0].layer.n, 60);
}

TEST(RescueTest, DequantisedWhereNothingElseIsLeft) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::mixed_precision, "stub_odd", "marlin").contract.k = {1, 64, 1};
  stubs.add(Family::bf16, "stub_bf16", "torch");
  const LayerSpec rank = rank_of("a.down_proj", awq_scheme(128), 4096, 8192, 2);
  const Plan plan = plan_of(stubs, {rank}, degree(2), elsewhere("sm_90")).value();
  EXPECT_EQ(served(plan), "stub_bf16 1..");
  EXPECT_EQ(rescue(plan).kind, Rescue::dequantised);
  EXPECT_EQ(rescue(plan).extra_bytes, uint64_t{2} * 4096 * 4096 - rank.weight_bytes);
  EXPECT_EQ(rescue(plan).field, "k");
  EXPECT_EQ(rescue(plan).found, "4096");
  Policy exact = degree(2);
  exact.arithmetic = Arithmetic::exact;
  EXPECT_FALSE(plan_of(stubs, {rank}, exact, elsewhere("sm_90")).ok());
}

TEST(RescueTest, UnevenSplitsAreFilledUp) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::bf16, "stub_bf16", "torch");
  const Plan plan =
      plan_of(stubs, {rank_of("lm_head", float_scheme(), 50257, 768, 2)}, degree(2), elsewhere("sm_90")).value();
  EXPECT_EQ(rescue(plan).kind, Rescue::padding);
  EXPECT_EQ(rescue(plan).found, "50257");
  EXPECT_EQ(rescue(plan).wanted, "a multiple of 2");
  EXPECT_EQ(rescue(plan).extra_bytes, uint64_t{2} * 768);
}

TEST(RescueTest, UnevenPartsAreNamed) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::bf16, "stub_bf16", "torch");
  LayerSpec fused = layer_of("a.qkv_proj", float_scheme(), 10, 64);  // 10 divides by 5, its parts do not
  fused.modules = {{"a.q_proj", 8, fused.modules[0].tensors}, {"a.k_proj", 2, fused.modules[0].tensors}};
  const Plan plan = plan_of(stubs, {shard(fused, 5)}, degree(5), elsewhere("sm_90")).value();
  EXPECT_EQ(rescue(plan).found, "8");
  EXPECT_TRUE(mentions(rescue(plan).reason, "n 8 mod 5 = 3")) << rescue(plan).reason;
}

TEST(RescueTest, OtherEnginesFillNothingUp) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::bf16, "stub_bf16", "torch");
  Contract& contract = stubs.add(Family::fp8_block_w8a8, "stub_block", "triton").contract;
  contract.partial_groups = contract.shard_offset = true;
  Registry other = stubs.registry();
  other.rules.rescues_shards = false;
  PlanRequest request;
  request.registry = &other;
  request.device = elsewhere("sm_90");
  request.policy = degree(3);
  request.layers = {rank_of("a.down_proj", float_scheme(), 64, 100, 3)};
  const auto refused = make_plan(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(exit_code(refused.error().code), 3);
  EXPECT_TRUE(mentions(refused.error().details.at(1), "k 100 mod 3 = 1")) << refused.error().details.at(1);
  request.layers = {rank_of("lm_head", float_scheme(), 100, 64, 3),
                    rank_of("a.down_proj", fp8_block_scheme(), 64, 3 * 192, 3)};
  const Plan plan = make_plan(request).value();
  EXPECT_EQ(rescue(plan).kind, Rescue::padding) << "a vocabulary is filled up by engines";
  EXPECT_TRUE(mentions(rescue(plan, 1).reason, "no gate")) << rescue(plan, 1).reason;
}

TEST(RescueTest, ALockedPlanIsKept) {
  StubRegistry stubs(Platform::cuda);
  Kernel& padded = stubs.add(Family::mixed_precision, "stub_k128", "machete");
  padded.contract.k.multiple = 128;
  padded.layout = stubs.layout("packed");
  const_cast<Layout*>(padded.layout)->bytes = [](const LayerSpec& layer) { return layer.n * layer.k; };
  PlanRequest request;
  request.registry = &stubs.registry();
  request.device = elsewhere("sm_90");
  request.policy = degree(8);
  request.layers = {rank_of("a.down_proj", awq_scheme(32), 4096, 1376 * 8, 8)};
  const Plan plan = make_plan(request).value();
  EXPECT_EQ(plan.layers[0].decision->second_layout_bytes, uint64_t{4096} * 1408);
  ASSERT_TRUE(rescue(plan).served);
  EXPECT_EQ(rescue(plan).served->k, 1408);
  const PlanRecord record = record_of(plan);
  request.lock = &record;
  const auto again = make_plan(request);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->hash, plan.hash);
}

TEST(RescueTest, RefusedRowsCanBeKept) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::bf16, "stub_small", "torch").contract.n.max = 64;
  PlanRequest request;
  request.registry = &stubs.registry();
  request.device = elsewhere("sm_90");
  request.layers = {layer_of("a", float_scheme(), 64, 64), layer_of("b", float_scheme(), 128, 64)};
  ASSERT_FALSE(make_plan(request).ok());
  request.keep_refused = true;
  const Plan plan = make_plan(request).value();
  ASSERT_EQ(plan.layers.size(), 2u);
  EXPECT_TRUE(serves_every_batch(*plan.layers[0].decision));
  EXPECT_FALSE(serves_every_batch(*plan.layers[1].decision));
  EXPECT_EQ(obstacle_of(plan.layers[1].decision->candidates).found, "128");
  Decision gap;
  gap.ranges.resize(2);
  gap.ranges[0].m_max = 4;
  gap.ranges[1].m_min = 6;
  EXPECT_FALSE(serves_every_batch(gap));
}

TEST(RescueTest, DegreesWithEqualShardsOfUnequalLayersStayApart) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::fp8_block_w8a8, "stub_block", "native");
  // Equal shapes, but only the second layer's blocks are cut.
  const Plan plan = plan_of(stubs,
                            {rank_of("a.q_proj", fp8_block_scheme(), 1024, 64, 4),
                             rank_of("b.down_proj", fp8_block_scheme(), 256, 256, 4)},
                            degree(4), elsewhere("sm_90"))
                        .value();
  EXPECT_FALSE(plan.layers[0].decision->rescue);
  EXPECT_EQ(rescue(plan, 1).kind, Rescue::shared_scale_tile);
}

TEST(Case31, GroupSizeIsNeverInferred) {
  const LayerSpec rank = rank_of("a.down_proj", awq_scheme(128), 4096, 11008, 4);
  StubRegistry partial(Platform::cuda), whole(Platform::cuda);
  Contract& takes_all = partial.add(Family::mixed_precision, "stub_partial", "marlin").contract;
  takes_all.shard_offset = true;
  Contract& takes_whole = whole.add(Family::mixed_precision, "stub_whole", "marlin").contract;
  takes_whole.partial_groups = false;
  takes_whole.groups = {128};
  whole.add(Family::mixed_precision, "stub_floor", "emulation").contract.shard_offset = true;

  const Plan cut = plan_of(partial, {rank}, degree(4), elsewhere("sm_90")).value();
  EXPECT_EQ(served(cut), "stub_partial 1..");
  EXPECT_EQ(rescue(cut).kind, Rescue::partial_group);
  EXPECT_TRUE(mentions(rescue(cut).reason, "k 2752 mod 128 = 64")) << rescue(cut).reason;
  EXPECT_EQ(rescue(cut).extra_bytes, uint64_t{4096} * 2 / 2) << "half a group of scales a row, on average";

  const Plan filled = plan_of(whole, {rank}, degree(4), elsewhere("sm_90")).value();
  EXPECT_EQ(served(filled), "stub_whole 1..");
  EXPECT_EQ(rescue(filled).kind, Rescue::padding);
  EXPECT_EQ(rescue(filled).k, 2816);
  EXPECT_EQ(rescue(filled).found, "2752");
  EXPECT_EQ(rescue(filled).wanted, "a multiple of 128");
  EXPECT_EQ(filled.layers[0].layer.scheme.weight.grouping.cols, 128);
  EXPECT_EQ(filled.layers[0].layer.k, 2752) << "the rank's own shape, before padding";
}

TEST(Case32, ShardSmallerThanABlock) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::fp8_block_w8a8, "stub_block", "native");
  for (const LayerSpec& rank : {rank_of("a.down_proj", fp8_block_scheme(), 2048, 512, 8),
                                rank_of("a.q_proj", fp8_block_scheme(), 512, 2048, 8)}) {
    const Plan plan = plan_of(stubs, {rank}, degree(8), elsewhere("sm_90")).value();
    EXPECT_EQ(rescue(plan).kind, Rescue::shared_scale_tile);
    EXPECT_EQ(rescue(plan).extra_bytes, uint64_t{16 - 8} * 4);
    EXPECT_EQ(rescue(plan).found, "64");
  }
  StubRegistry whole(Platform::cuda);
  whole.add(Family::fp8_block_w8a8, "stub_whole", "native").contract.partial_groups = false;
  const LayerSpec rank = rank_of("a.down_proj", fp8_block_scheme(), 2048, 512, 8);
  const Plan plan = plan_of(whole, {rank}, degree(8), elsewhere("sm_90")).value();
  EXPECT_EQ(rescue(plan).kind, Rescue::padding);
  EXPECT_EQ(rescue(plan).k, 128);
  EXPECT_GE(rescue(plan).extra_bytes, uint64_t{2048} * 64);
}

TEST(Case34, MultipleOf16FoundAtPlanTime) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::fp8_w8a8, "stub_k16", "cutlass").contract.k.multiple = 16;
  LayerSpec whole = layer_of("a.down_proj", fp8_channel_scheme(), 4096, 10944);
  whole.bias = true;
  const Plan plan = plan_of(stubs, {shard(whole, 8)}, degree(8), elsewhere("sm_90")).value();
  EXPECT_EQ(served(plan), "stub_k16 1..");
  EXPECT_EQ(rescue(plan).kind, Rescue::padding);
  EXPECT_EQ(rescue(plan).k, 1376);
  EXPECT_EQ(rescue(plan).n, 4096) << "outputs and bias keep their length";
  EXPECT_EQ(rescue(plan).found, "1368");
  EXPECT_EQ(rescue(plan).wanted, "a multiple of 16");
  EXPECT_EQ(rescue(plan).extra_bytes, uint64_t{8} * 4096);
}

TEST(Case36, Wide464) {
  StubRegistry stubs(Platform::cuda);
  Contract& contract = stubs.add(Family::nvfp4_w4a4, "stub_tile32", "cutlass").contract;
  contract.n.multiple = contract.k.multiple = 32;
  stubs.add(Family::nvfp4_w4a4, "stub_floor", "emulation");
  const Plan column =
      plan_of(stubs, {rank_of("a.up_proj", nvfp4_scheme(), 1856, 4096, 4)}, degree(4), elsewhere("sm_120")).value();
  EXPECT_EQ(served(column), "stub_tile32 1..");
  EXPECT_EQ(rescue(column).n, 480);
  EXPECT_EQ(rescue(column).extra_bytes, uint64_t{16} * (4096 / 2 + 4096 / 16));
  const Plan row =
      plan_of(stubs, {rank_of("a.down_proj", nvfp4_scheme(), 4096, 1856, 4)}, degree(4), elsewhere("sm_120")).value();
  EXPECT_EQ(rescue(row).k, 480);
  EXPECT_EQ(rescue(row).extra_bytes, uint64_t{4096} * (8 + 1));
  EXPECT_EQ(column.layers[0].layer.n, 464);
}

TEST(Case38, ActOrderCutsNoGroup) {
  Scheme scheme = awq_scheme(128);
  scheme.weight.storage = Storage::gptq_v1;
  scheme.weight.act_order = true;
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::mixed_precision, "stub_in_order", "machete").contract.act_order = false;
  stubs.add(Family::mixed_precision, "stub_any_order", "marlin");
  const Plan plan =
      plan_of(stubs, {rank_of("a.down_proj", scheme, 512, 8192, 4)}, degree(4), elsewhere("sm_90")).value();
  EXPECT_EQ(served(plan), "stub_any_order 1..");
  EXPECT_EQ(verdict(plan, "stub_in_order").field, "act_order");
  EXPECT_FALSE(plan.layers[0].decision->rescue);
  EXPECT_EQ(plan.layers[0].decision->scale_bytes, uint64_t{64} * 512 * 2) << "the whole scale table on every rank";
}

TEST(Case51, AHeadOf31040Rows) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::nvfp4_w4a4, "stub_n128", "cutlass").contract.n.multiple = 128;
  stubs.add(Family::nvfp4_w4a4, "stub_n64", "flashinfer_cutlass").contract.n.multiple = 64;
  stubs.add(Family::bf16, "stub_bf16", "torch");
  const LayerSpec quantized = rank_of("lm_head", nvfp4_scheme(), 248320, 5120, 8);
  const LayerSpec tied = rank_of("lm_head", float_scheme(), 248320, 5120, 8);
  const Plan plan = plan_of(stubs, {quantized, tied}, degree(8), elsewhere("sm_120")).value();
  EXPECT_EQ(plan.layers[0].layer.n, 31040);
  EXPECT_EQ(served(plan, 0), "stub_n64 1..");
  EXPECT_EQ(verdict(plan, "stub_n128").found, "31040");
  EXPECT_EQ(served(plan, 1), "stub_bf16 1..");
  StubRegistry strict128(Platform::cuda);
  strict128.add(Family::nvfp4_w4a4, "stub_n128", "cutlass").contract.n.multiple = 128;
  const Plan filled = plan_of(strict128, {quantized}, degree(8), elsewhere("sm_120")).value();
  EXPECT_EQ(rescue(filled).kind, Rescue::padding);
  EXPECT_EQ(rescue(filled).n, 31104);
}

}  // namespace
}  // namespace gearshift
