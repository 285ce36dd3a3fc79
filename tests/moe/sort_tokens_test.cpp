#include <random>

#include "moe/made_block.h"

namespace gearshift {
namespace {

using testing::Load;
using testing::made_routing;
using testing::MadeRouting;

struct Sorted {
  std::vector<int32_t> entry, place, first;
  SortedTokens spans;
  Sorted(const MadeRouting& routing, int64_t experts)
      : entry(routing.experts.size(), -1),
        place(routing.experts.size(), -1),
        first(static_cast<size_t>(experts) + 1, -1) {
    spans = {entry, place, first};
    sort_tokens(routing.view(), spans);
  }
};

// Every entry once, experts in order, entries of one expert in theirs.
void expect_sorted(const MadeRouting& routing, int64_t experts) {
  const Sorted sorted(routing, experts);
  ASSERT_EQ(sorted.first.front(), 0);
  ASSERT_EQ(sorted.first.back(), static_cast<int32_t>(routing.experts.size()));
  std::vector<int32_t> expected;
  for (int32_t e = 0; e < experts; ++e) {
    ASSERT_EQ(sorted.first[static_cast<size_t>(e)], static_cast<int32_t>(expected.size()));
    for (size_t i = 0; i < routing.experts.size(); ++i) {
      if (routing.experts[i] == e) expected.push_back(static_cast<int32_t>(i));
    }
  }
  ASSERT_EQ(sorted.entry, expected);
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(sorted.place[static_cast<size_t>(expected[i])], static_cast<int32_t>(i));
}

TEST(SortTokens, IsStable) {
  MadeRouting routing{3, 2, {2, 0, 2, 2, 0, 3}, {}};
  const Sorted sorted(routing, 5);
  EXPECT_EQ(sorted.entry, (std::vector<int32_t>{1, 4, 0, 2, 3, 5}));
  EXPECT_EQ(sorted.first, (std::vector<int32_t>{0, 2, 2, 5, 6, 6}));
  EXPECT_EQ(sorted.spans.rows_of(1), 0);
  EXPECT_EQ(sorted.spans.rows_of(2), 3);
}

TEST(SortTokens, NoTokens) {
  const Sorted sorted({0, 4, {}, {}}, 3);
  EXPECT_EQ(sorted.first, (std::vector<int32_t>{0, 0, 0, 0}));
}

// 10^5 draws: tokens, experts and loads of every kind.
TEST(SortTokens, RandomLoads) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  int64_t draws = 0;
  while (draws < 100000) {
    const auto experts = static_cast<int64_t>(1 + random() % 512), top_k = static_cast<int64_t>(1 + random() % 10);
    const auto tokens = static_cast<int64_t>(random() % 60);
    const auto load = static_cast<Load>(random() % 4);
    expect_sorted(made_routing(tokens, top_k, experts, load, random), experts);
    if (HasFatalFailure()) return;
    draws += tokens * top_k;
  }
}

}  // namespace
}  // namespace gearshift
