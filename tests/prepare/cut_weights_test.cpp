#include "prepare/cut_weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "kernel/schemes.h"
#include "layer/shard.h"
#include "prepare/shard_sum.h"

namespace gearshift {
namespace {

using testing::MadeLayer;
using testing::Named;

void expect_same(const MadeLayer& whole, const LayerSpec& target, uint64_t seed) {
  ShardSum sum(whole.weights, seed, 1);
  for (int64_t rank = 0; rank < target.shard->tp; ++rank) {
    const auto cut = cut_weights(whole.weights, target, rank);
    ASSERT_TRUE(cut.ok()) << cut.error().message();
    sum.add(**cut, rank);
  }
  EXPECT_EQ(sum.difference(), "");
}

// A layer of a scheme that splits by columns or rows.
std::unique_ptr<MadeLayer> made(const Named& named, Split split, std::vector<int64_t> rows, int64_t k, uint64_t seed,
                                bool bias = false) {
  auto layer = std::make_unique<MadeLayer>(named, rows, k, seed, bias);
  layer->spec.name = split == Split::column ? "a.qkv_proj" : "a.o_proj";
  return layer;
}

TEST(CutWeights, RanksTogetherEqualTheWholeInEveryScheme) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const Named& named : testing::all_schemes()) {
    for (const Split split : {Split::column, Split::row}) {
      for (const int64_t tp : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}}) {
        const auto some = [&](int64_t most, int64_t multiple) {
          return static_cast<int64_t>(1 + random() % static_cast<uint64_t>(most)) * multiple;
        };
        const std::vector<int64_t> rows = {some(6, 8), some(3, 8)};
        const int64_t k = some(12, 32);
        SCOPED_TRACE(std::string(named.name) + ", " + std::string(name(split)) + " over " + std::to_string(tp) +
                     ", N " + std::to_string(rows[0]) + "+" + std::to_string(rows[1]) + " K " + std::to_string(k));
        const auto whole = made(named, split, rows, k, random(), true);
        const LayerSpec rank = shard(whole->spec, tp);
        expect_same(*whole, rank, random());
        Padding padding;
        padding.n_multiple = 16;
        padding.k_multiple = 64;
        expect_same(*whole, padded(rank, padding), random());
        padding.whole_tiles = true;
        expect_same(*whole, padded(rank, padding), random());
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

const Named& scheme(std::string_view wanted) {
  static const std::vector<Named> all = testing::all_schemes();
  for (const Named& named : all)
    if (named.name == wanted) return named;
  throw std::out_of_range(std::string(wanted));
}

TEST(Case32, ShardSmallerThanOneBlock) {
  const auto row = made(scheme("fp8 block"), Split::row, {256}, 512, 32);
  const LayerSpec rank = shard(row->spec, 8);
  ASSERT_EQ(rank.k, 64);
  expect_same(*row, rank, 1);
  for (int64_t r = 0; r < 8; ++r) {
    const auto cut = cut_weights(row->weights, rank, r);
    ASSERT_TRUE(cut.ok());
    const PartWeights& part = (*cut)->weights.parts[0];
    ASSERT_EQ(part.tile_cols, 1);
    for (int64_t block = 0; block < 2; ++block)
      EXPECT_EQ(
          std::memcmp(part.scale.data() + 4 * block, row->weights.parts[0].scale.data() + 4 * (block * 4 + r / 2), 4),
          0)
          << "ranks 2j and 2j+1 hold scale tile j";
  }
  expect_same(*made(scheme("fp8 block"), Split::column, {512}, 256, 33),
              shard(made(scheme("fp8 block"), Split::column, {512}, 256, 33)->spec, 8), 2);
}

TEST(Case36, FilledUpWithZeros) {
  Padding padding;
  padding.n_multiple = padding.k_multiple = 32;
  const auto column = made(scheme("nvfp4 modelopt"), Split::column, {1856}, 64, 36);
  const LayerSpec as_n = padded(shard(column->spec, 4), padding);
  EXPECT_EQ(as_n.n, 480);
  expect_same(*column, as_n, 3);
  const auto row = made(scheme("nvfp4 modelopt"), Split::row, {16}, 1856, 37);
  const LayerSpec as_k = padded(shard(row->spec, 4), padding);
  EXPECT_EQ(as_k.k, 480);
  expect_same(*row, as_k, 4);
  const auto cut = cut_weights(row->weights, as_k, 1);
  ASSERT_TRUE(cut.ok());
  const PartWeights& part = (*cut)->weights.parts[0];
  ASSERT_EQ(part.tile_cols, 30);
  for (int64_t n = 0; n < 16; ++n) {
    EXPECT_EQ(part.scale[static_cast<size_t>(n * 30 + 29)], 0) << "scales of the padding are zero";
    for (int64_t byte = 232; byte < 240; ++byte) EXPECT_EQ(part.weight[static_cast<size_t>(n * 240 + byte)], 0);
  }
}

TEST(Case38, ActOrderOverRanks) {
  for (const Named& named : testing::all_schemes()) {
    if (!named.scheme.weight.act_order) continue;
    SCOPED_TRACE(named.name);
    const int64_t group = std::max<int64_t>(named.scheme.weight.grouping.cols, 32);
    const auto whole = made(named, Split::row, {64}, 16 * group, 38);
    const LayerSpec rank = shard(whole->spec, 4);
    expect_same(*whole, rank, 5);
    const auto cut = cut_weights(whole->weights, rank, 2);
    ASSERT_TRUE(cut.ok());
    EXPECT_EQ((*cut)->weights.parts[0].scale.size(), whole->weights.parts[0].scale.size()) << "the whole scale table";
  }
}

TEST(CutWeights, HalvesOfOneMatrixWhoseBlocksAreCut) {
  Named block = scheme("fp8 block");
  MadeLayer whole(block, {384}, 128, 7);
  whole.spec.name = "a.experts.gate_up_proj";
  const auto cut = cut_weights(whole.weights, shard(whole.spec, 2), 1);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code, ErrorCode::runtime);
  EXPECT_NE(cut.error().message().find("a.experts.gate_up_proj"), std::string::npos);
  expect_same(*made(scheme("fp8 channel bf16"), Split::column, {384}, 64, 8),
              shard(made(scheme("fp8 channel bf16"), Split::column, {384}, 64, 8)->spec, 2), 9);
}

TEST(CutWeights, StoredPairDividesInHalves) {
  MadeLayer whole(scheme("bf16"), {12}, 8, 10);
  whole.spec.name = "a.experts.gate_up_proj";
  const LayerSpec rank = shard(whole.spec, 2);
  const auto cut = cut_weights(whole.weights, rank, 1);
  ASSERT_TRUE(cut.ok());
  const uint8_t* own = (*cut)->weights.parts[0].weight.data();
  const uint8_t* all = whole.weights.parts[0].weight.data();
  EXPECT_EQ(std::memcmp(own, all + 3 * 16, 3 * 16), 0) << "rows 3 to 5 of the first half";
  EXPECT_EQ(std::memcmp(own + 3 * 16, all + 9 * 16, 3 * 16), 0) << "rows 9 to 11, the same of the second";
  expect_same(whole, rank, 11);
}

}  // namespace
}  // namespace gearshift
