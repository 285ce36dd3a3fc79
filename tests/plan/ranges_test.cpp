#include "plan/ranges.h"

#include <gtest/gtest.h>

#include <random>

namespace gearshift {
namespace {

Contender contender(size_t candidate, BatchRange allowed, BatchRange preferred = {}, int tier = 0,
                    const Layout* layout = &checkpoint_layout) {
  return {candidate, tier, BatchSet(allowed), preferred, layout};
}

std::string text(const std::vector<Assignment>& assignments) {
  std::string out;
  for (const Assignment& a : assignments)
    out += "#" + std::to_string(a.candidate) + " " + gearshift::text(a.range) + "; ";
  return out;
}

TEST(Assign, ListOrderInsidePreferredRanges) {
  EXPECT_EQ(text(assign({contender(0, {}, {1, 16}), contender(1, {})})), "#0 M 1..16; #1 M 17 and up; ");
}

TEST(Assign, PreferenceIsIgnoredWhereNothingElseIsLeft) {
  EXPECT_EQ(text(assign({contender(0, {}, {1, 16})})), "#0 every M; ");
  EXPECT_EQ(text(assign({contender(0, {}, {1, 16}), contender(1, {1, 64})})),
            "#0 M 1..16; #1 M 17..64; #0 M 65 and up; ");
}

TEST(Assign, LowerTierTakesAllItMay) {
  EXPECT_EQ(text(assign({contender(0, {}, {}, 1), contender(1, {1, 64}, {1, 16}, 0)})), "#1 M 1..64; #0 M 65 and up; ");
}

TEST(Assign, WhatNobodyAllowsIsMissing) {
  EXPECT_EQ(text(assign({contender(0, {2, 4}), contender(1, {8, 9})})), "#0 M 2..4; #1 M 8..9; ");
  EXPECT_EQ(text(assign({})), "");
}

TEST(Assign, EveryBatchSizeGoesToItsOwnBest) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto range = [&] {
    const int64_t a = 1 + static_cast<int64_t>(random() % 30), b = 1 + static_cast<int64_t>(random() % 30);
    return BatchRange{std::min(a, b), random() % 2 ? kNoBound : std::max(a, b)};
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<Contender> contenders;
    for (size_t i = 0; i < 5; ++i) contenders.push_back(contender(i, range(), range(), static_cast<int>(random() % 2)));
    const std::vector<Assignment> assignments = assign(contenders);
    for (int64_t m = 1; m <= 40; ++m) {
      // The naive rule, one batch size at a time.
      std::optional<size_t> expected;
      for (int tier : {0, 1})
        for (bool inside : {true, false})
          for (const Contender& c : contenders)
            if (!expected && c.tier == tier && c.allowed.contains({m, m}) &&
                (c.preferred.min <= m && m <= c.preferred.max) == inside)
              expected = c.candidate;
      std::optional<size_t> found;
      for (const Assignment& a : assignments)
        if (a.range.min <= m && m <= a.range.max) found = a.candidate;
      ASSERT_EQ(found, expected) << "M " << m << ": " << text(assignments);
    }
  }
}

class ChooseLayout : public ::testing::Test {
 protected:
  Layout a_, b_;
};

TEST_F(ChooseLayout, TheFirstThatGetsABatchSizeWins) {
  const LayoutChoice choice = choose_layout(
      {contender(0, {}, {1, 16}, 0, &a_), contender(1, {}, {}, 0, &b_), contender(2, {}, {17, kNoBound}, 0, &a_)});
  EXPECT_EQ(choice.packed, &a_);
  EXPECT_EQ(text(choice.assignments), "#0 M 1..16; #2 M 17 and up; ");
}

TEST_F(ChooseLayout, CheckpointBytesServeBesideIt) {
  const LayoutChoice choice =
      choose_layout({contender(0, {1, 16}, {}, 0, &a_), contender(1, {}, {}, 0, &b_), contender(2, {})});
  EXPECT_EQ(choice.packed, &a_);
  EXPECT_EQ(text(choice.assignments), "#0 M 1..16; #2 M 17 and up; ");
}

TEST_F(ChooseLayout, ALayoutThatNobodyUsesTakesNothingAway) {
  const LayoutChoice choice =
      choose_layout({contender(0, {1, 16}), contender(1, {1, 8}, {}, 0, &a_), contender(2, {}, {}, 0, &b_)});
  EXPECT_EQ(choice.packed, &b_);
  EXPECT_EQ(text(choice.assignments), "#0 M 1..16; #2 M 17 and up; ");
  EXPECT_EQ(choose_layout({contender(0, {}), contender(1, {}, {}, 0, &a_)}).packed, nullptr);
}

TEST_F(ChooseLayout, OneThatLeavesBatchSizesUnservedYields) {
  const LayoutChoice choice = choose_layout({contender(0, {1, 8}, {}, 0, &a_), contender(1, {}, {}, 0, &b_)});
  EXPECT_EQ(choice.packed, &b_);
  EXPECT_EQ(text(choice.assignments), "#1 every M; ");
}

TEST_F(ChooseLayout, RequestedKernelsComeFirst) {
  const LayoutChoice choice =
      choose_layout({contender(0, {}, {}, 1, &a_), contender(1, {1, 16}, {}, 0, &b_), contender(2, {}, {}, 1)});
  EXPECT_EQ(choice.packed, &b_);
  EXPECT_EQ(text(choice.assignments), "#1 M 1..16; #2 M 17 and up; ");
}

}  // namespace
}  // namespace gearshift
