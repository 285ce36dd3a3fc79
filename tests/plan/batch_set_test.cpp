#include "plan/batch_set.h"

#include <gtest/gtest.h>

#include <random>

namespace gearshift {
namespace {

constexpr int64_t kUniverse = 40;  // beyond it a set is either all or nothing

std::vector<bool> members(const BatchSet& set) {
  std::vector<bool> bits;
  for (int64_t m = 1; m <= kUniverse; ++m) bits.push_back(set.contains({m, m}));
  bits.push_back(set.contains({kUniverse + 1, kNoBound}));
  return bits;
}

BatchRange random_range(std::mt19937_64& random) {
  std::uniform_int_distribution<int64_t> edge(1, kUniverse);
  const int64_t a = edge(random), b = edge(random);
  return {std::min(a, b), random() % 4 == 0 ? kNoBound : std::max(a, b)};
}

TEST(BatchSet, OperationsAgreeWithSetsOfBits) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    BatchSet set;
    std::vector<bool> bits(kUniverse + 1, false);
    for (int step = 0; step < 8; ++step) {
      const BatchRange range = random_range(random);
      const std::vector<bool> other = members(BatchSet(range));
      const int operation = static_cast<int>(random() % 3);
      if (operation == 0) set.add(range);
      if (operation == 1) set.subtract(range);
      if (operation == 2) set.intersect(range);
      for (size_t i = 0; i < bits.size(); ++i)
        bits[i] = operation == 0 ? bits[i] || other[i] : bits[i] && (operation == 2) == other[i];
      ASSERT_EQ(members(set), bits);
      std::vector<bool> inverted = bits;
      inverted.flip();
      ASSERT_EQ(members(set.complement()), inverted);
      for (size_t i = 1; i < set.ranges().size(); ++i)
        ASSERT_GT(set.ranges()[i].min, set.ranges()[i - 1].max + 1) << "ranges touch";
      ASSERT_EQ(set.empty(), set.ranges().empty());
    }
  }
}

TEST(BatchSet, WholeRange) {
  BatchSet all{BatchRange{}};
  EXPECT_TRUE(all.everything());
  all.subtract({kNoBound, kNoBound});
  EXPECT_FALSE(all.everything());
  EXPECT_TRUE(all.contains({1, kNoBound - 1}));
  all.add({kNoBound, kNoBound});
  EXPECT_TRUE(all.everything());
}

TEST(BatchSet, PagesWriteNoBoundAsZero) {
  EXPECT_EQ(batch_range(1, 0), BatchRange{});
  EXPECT_EQ(batch_range(0, 4), (BatchRange{1, 4}));
  EXPECT_EQ(batch_range(5, 4), std::nullopt);
  EXPECT_EQ(batch_range(-7, -1), std::nullopt);
}

TEST(BatchSet, Texts) {
  EXPECT_EQ(text(BatchRange{}), "every M");
  EXPECT_EQ(text(BatchRange{17, kNoBound}), "M 17 and up");
  EXPECT_EQ(text(BatchRange{1, 16}), "M 1..16");
  EXPECT_EQ(text(BatchRange{5, 5}), "M 5");
  BatchSet holes{BatchRange{}};
  EXPECT_EQ(text(holes.complement()), "no M");
  holes.subtract({5, 8});
  EXPECT_EQ(text(holes), "M 1..4 and M 9 and up");
}

}  // namespace
}  // namespace gearshift
