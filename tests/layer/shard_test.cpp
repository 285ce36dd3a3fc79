#include "layer/shard.h"

#include <gtest/gtest.h>

#include "layer/stored_bits.h"
#include "layer/table.h"

namespace gearshift {
namespace {

LayerSpec layer_of(std::string name, std::vector<int64_t> rows, int64_t k, Scheme scheme) {
  LayerSpec layer;
  layer.name = std::move(name);
  layer.scheme = scheme;
  layer.family = family_of(scheme);
  layer.k = k;
  for (int64_t n : rows) {
    layer.n += n;
    layer.modules.push_back({layer.name, n, {{TensorRole::weight, layer.name + ".weight", DType::bf16, {n, k}}}});
  }
  return layer;
}

Scheme fp8_block() {
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight.format = Format::e4m3;
  scheme.weight.grouping = {Grouping::Kind::block, 128, 128};
  return scheme;
}

Scheme awq(int64_t group) {
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight.format = Format::uint4;
  scheme.weight.storage = Storage::awq;
  scheme.weight.grouping = {Grouping::Kind::group, 1, group};
  scheme.weight.scale = DType::f16;
  return scheme;
}

Split split_of(const char* name) { return shard(layer_of(name, {256}, 256, {}), 2).shard->split; }

TEST(ShardTest, NamesDecide) {
  for (const char* name : {"model.layers.0.self_attn.q_proj", "a.qkv_proj", "a.qkv", "a.key", "a.mlp.gate_up_proj",
                           "a.experts.w13", "a.linear_attn.in_proj_qkvz", "m.in_proj", "lm_head", "a.up_proj"})
    EXPECT_EQ(split_of(name), Split::column) << name;
  for (const char* name : {"a.o_proj", "a.out_proj", "a.mlp.down_proj", "a.experts.down_proj", "a.w2"})
    EXPECT_EQ(split_of(name), Split::row) << name;
  for (const char* name :
       {"a.mlp.gate", "a.router", "a.shared_expert_gate", "visual.proj", "a.kv_a_proj_with_mqa", "fc"})
    EXPECT_EQ(split_of(name), Split::none) << name;
}

TEST(ShardTest, EachPartDividesOnItsOwn) {
  const LayerSpec whole = layer_of("a.qkv_proj", {4096, 1024, 1024}, 4096, {});
  const LayerSpec rank = shard(whole, 4);
  EXPECT_EQ(rank.n, 1536);
  EXPECT_EQ(rank.k, 4096);
  EXPECT_EQ(rank.modules[0].n, 1024);
  EXPECT_EQ(rank.modules[1].n, 256);
  EXPECT_EQ(rank.weight_bytes, uint64_t{2} * 1536 * 4096);
  EXPECT_EQ(rank.shard->whole->n, 6144);
  EXPECT_FALSE(rank.shard->uneven);
  const LayerSpec down = shard(layer_of("a.down_proj", {4096}, 14336, {}), 8);
  EXPECT_EQ(down.n, 4096);
  EXPECT_EQ(down.k, 1792);
}

TEST(ShardTest, ExpertsDivideLikeLayers) {
  LayerSpec experts = layer_of("a.experts.gate_up_proj", {768, 768, 768, 768}, 2048, {});
  experts.kind = LayerKind::experts;
  experts.experts = 2;  // of two parts each
  experts.n = 1536;
  const LayerSpec rank = shard(experts, 2);
  EXPECT_EQ(rank.n, 768);
  EXPECT_EQ(rank.modules[3].n, 384);
  LayerSpec stack = layer_of("a.experts.gate_up_proj", {1536}, 2048, {});
  stack.kind = LayerKind::experts;
  stack.experts = 16;
  stack.stacked = true;
  EXPECT_EQ(shard(stack, 2).n, 768);
  EXPECT_EQ(shard(stack, 2).weight_bytes, uint64_t{16} * 768 * 2048 * 2);
  EXPECT_EQ(stored_halves(stack), 2);
  stack.row_order = RowOrder::interleaved;
  EXPECT_EQ(stored_halves(stack), 1);
  EXPECT_EQ(shard(stack, 512).n, 4) << "gate and up rows stay in pairs";
}

TEST(ShardTest, OneRankHoldsEverything) {
  const LayerSpec whole = layer_of("a.o_proj", {100}, 300, fp8_block());
  const LayerSpec rank = shard(whole, 1);
  EXPECT_EQ(rank.k, 300);
  EXPECT_FALSE(rank.shard->offset);
  EXPECT_EQ(layer_class(rank), layer_class(whole));
  EXPECT_EQ(duplicated_scale_bytes(rank), 0u);
}

TEST(ShardTest, UnevenSplitsAreSaid) {
  const LayerSpec head = shard(layer_of("lm_head", {50257}, 768, {}), 2);
  EXPECT_TRUE(head.shard->uneven);
  EXPECT_EQ(head.n, 25129);
  EXPECT_EQ(uneven_bytes(head), uint64_t{2} * 768);
  EXPECT_EQ(shard(layer_of("a.q_proj", {3}, 8, {}), 8).n, 1);
}

TEST(ShardTest, CutScaleTiles) {
  // 21.5 groups of 128 a rank: every second one begins inside.
  const LayerSpec cut = shard(layer_of("a.down_proj", {4096}, 11008, awq(128)), 4);
  EXPECT_EQ(cut.k, 2752);
  EXPECT_TRUE(cut.shard->offset);
  EXPECT_EQ(cut.scheme.weight.grouping.cols, 128) << "never a group size from tensor sizes";
  EXPECT_EQ(duplicated_scale_bytes(cut), uint64_t{4096} * (22 - 21) / 2 * 2);
  // Two ranks inside one block: no rank begins inside a tile that it shares with other data of its own.
  const LayerSpec inside = shard(layer_of("a.down_proj", {2048}, 512, fp8_block()), 8);
  EXPECT_EQ(inside.k, 64);
  EXPECT_FALSE(inside.shard->offset);
  EXPECT_EQ(scale_tile(inside), 128);
  EXPECT_EQ(scale_tile(shard(layer_of("a.q_proj", {512}, 2048, fp8_block()), 8)), 128);
  EXPECT_EQ(divided_extent(shard(layer_of("a.qkv_proj", {8192, 1024, 1024}, 8192, fp8_block()), 16)), 64)
      << "of k and v";
  EXPECT_NE(layer_class(cut), layer_class(layer_of("a.down_proj", {4096}, 2752, awq(128))));
}

TEST(ShardTest, ActOrderKeepsTheWholeTable) {
  Scheme scheme = awq(128);
  scheme.weight.storage = Storage::gptq_v1;
  scheme.weight.act_order = true;
  const LayerSpec rank = shard(layer_of("a.down_proj", {512}, 8192, scheme), 4);
  EXPECT_FALSE(rank.shard->offset);
  EXPECT_EQ(scale_bytes(rank), uint64_t{64} * 512 * 2);
  EXPECT_EQ(duplicated_scale_bytes(rank), uint64_t{48} * 512 * 2);
}

TEST(PaddedTest, SizesThatAKernelNeeds) {
  const LayerSpec rank = shard(layer_of("a.up_proj", {1856}, 4096, awq(128)), 4);
  Padding padding;
  padding.n_multiple = 32;
  EXPECT_EQ(padded(rank, padding).n, 480);
  EXPECT_EQ(padded(rank, padding).modules[0].n, 480);
  EXPECT_EQ(padded(rank, padding).weight_bytes, uint64_t{480} * 4096 / 2 + uint64_t{480} * 32 * 2);
  padding.n_min = 1000;
  EXPECT_EQ(padded(rank, padding).n, 1024);
  Padding tiles;
  tiles.whole_tiles = true;
  const LayerSpec cut = shard(layer_of("a.down_proj", {4096}, 11008, awq(128)), 4);
  EXPECT_EQ(padded(cut, tiles).k, 2816);
  EXPECT_FALSE(padded(cut, tiles).shard->offset);
  EXPECT_EQ(lead_of(padded(cut, tiles), 2752, 1), 64);
  EXPECT_EQ(lead_of(padded(cut, tiles), 2752, 2), 0);
  EXPECT_EQ(lead_of(cut, 2752, 1), 0);
}

}  // namespace
}  // namespace gearshift
