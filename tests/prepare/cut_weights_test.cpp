#include "prepare/cut_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "kernel/reference/reference.h"
#include "kernel/schemes.h"
#include "layer/shard.h"

namespace gearshift {
namespace {

using testing::MadeLayer;
using testing::Named;

constexpr int64_t kRows = 3;

struct Product {
  std::vector<double> y, magnitude;
};

// With activations as they come: what is left to differ is the weights.
Product multiply(const LayerWeights& weights, const std::vector<float>& x, int64_t m) {
  const LayerSpec& layer = *weights.spec;
  std::vector<int64_t> rows(static_cast<size_t>(m));
  std::iota(rows.begin(), rows.end(), 0);
  Product product;
  product.y.resize(static_cast<size_t>(m * layer.n));
  product.magnitude.resize(product.y.size());
  reference_rows(weights, {x.data(), DType::f32, m, layer.k, layer.k}, rows, ActivationUse::float16, product.y.data(),
                 product.magnitude.data(), 1);
  return product;
}

std::vector<float> draw(int64_t count, std::mt19937_64& random) {
  std::vector<float> x(static_cast<size_t>(count));
  for (float& value : x) value = std::uniform_real_distribution<float>(-2, 2)(random);
  return x;
}

// The rank's columns of x, zeros around them.
std::vector<float> share_of(const std::vector<float>& x, int64_t m, int64_t k, const LayerSpec& target, int64_t rank) {
  const RankColumns share = rank_columns(target, rank);
  std::vector<float> own(static_cast<size_t>(m * target.k), 0.0f);
  for (int64_t row = 0; row < m; ++row)
    for (int64_t i = 0; i < share.count; ++i)
      own[static_cast<size_t>(row * target.k + share.lead + i)] = x[static_cast<size_t>(row * k + share.first + i)];
  return own;
}

// Outputs of all ranks put together, or added up.
std::vector<double> over_ranks(const MadeLayer& whole, const LayerSpec& target, const std::vector<float>& x,
                               int64_t m) {
  std::vector<double> sum(static_cast<size_t>(m * whole.spec.n), 0.0);
  for (int64_t rank = 0; rank < target.shard->tp; ++rank) {
    const auto cut = cut_weights(whole.weights, target, rank);
    EXPECT_TRUE(cut.ok());
    if (!cut.ok()) return {};
    const LayerWeights& weights = (*cut)->weights;
    const Product part = multiply(weights, share_of(x, m, whole.spec.k, target, rank), m);
    int64_t from = 0, to = 0;
    for (size_t p = 0; p < weights.parts.size(); ++p) {
      const RankColumns rows = rank_rows(target, p, rank);
      for (int64_t row = 0; row < m; ++row)
        for (int64_t i = 0; i < rows.count; ++i)
          sum[static_cast<size_t>(row * whole.spec.n + to + rows.first + i)] +=
              part.y[static_cast<size_t>(row * target.n + from + rows.lead + i)];
      from += weights.parts[p].n;
      to += whole.weights.parts[p].n;
    }
  }
  return sum;
}

void expect_same(const MadeLayer& whole, const LayerSpec& target, uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<float> x = draw(kRows * whole.spec.k, random);
  const Product wanted = multiply(whole.weights, x, kRows);
  const std::vector<double> found = over_ranks(whole, target, x, kRows);
  ASSERT_EQ(found.size(), wanted.y.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_LE(std::fabs(found[i] - wanted.y[i]), 1e-12 * (1 + wanted.magnitude[i]))
        << "row " << i / static_cast<size_t>(whole.spec.n) << " column " << i % static_cast<size_t>(whole.spec.n);
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
        if (::testing::Test::HasFatalFailure()) return;
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
}

}  // namespace
}  // namespace gearshift
