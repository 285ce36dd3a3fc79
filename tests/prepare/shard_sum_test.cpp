#include "prepare/shard_sum.h"

#include <gtest/gtest.h>

#include "kernel/schemes.h"

namespace gearshift {
namespace {

using testing::MadeLayer;

const testing::Named& block_scheme() {
  static const std::vector<testing::Named> all = testing::all_schemes();
  for (const testing::Named& named : all)
    if (std::string_view(named.name) == "fp8 block") return named;
  throw std::out_of_range("fp8 block");
}

// What the shards of `layer` add up to, rank `damaged` with one byte of its codes changed.
std::string difference(const MadeLayer& layer, int64_t tp, int64_t damaged, int64_t left_out = -1) {
  const LayerSpec target = shard(layer.spec, tp);
  ShardSum sum(layer.weights, 5, 1);
  for (int64_t rank = 0; rank < tp; ++rank) {
    const auto cut = cut_weights(layer.weights, target, rank).value();
    if (rank == damaged) cut->bytes.front()[17] ^= 1;
    if (rank != left_out) sum.add(*cut, rank);
  }
  return sum.difference();
}

TEST(ShardSumTest, OneWrongCodeShows) {
  for (const char* name : {"a.q_proj", "a.o_proj"}) {
    MadeLayer layer(block_scheme(), {48}, 80, 3);
    layer.spec.name = name;
    EXPECT_EQ(difference(layer, 4, -1), "") << name;
    for (int64_t rank = 0; rank < 4; ++rank) {
      EXPECT_NE(difference(layer, 4, rank).find("instead of"), std::string::npos) << name << " rank " << rank;
      EXPECT_NE(difference(layer, 4, -1, rank), "") << "a rank that is missing";
    }
  }
}

}  // namespace
}  // namespace gearshift
