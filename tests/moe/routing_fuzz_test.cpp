// A hundred thousand choices of a router: whatever the load, a token's result is the sum over its experts, in the order
// of its slots, of what each of them makes of it alone; bit for bit.
#include <iostream>
#include <random>

#include "moe/made_block.h"

namespace gearshift {
namespace {

using testing::BlockShape;
using testing::GuardedMatrix;
using testing::Load;
using testing::made_routing;
using testing::MadeBlock;
using testing::MadeRouting;

constexpr int64_t kTokens = 12, kMostSlots = 10, kColumns = 32;

// What every expert makes of every token: [expert][token][column].
std::vector<float> made_alone(const ExpertBlock& block, GuardedMatrix& x, ExpertScratch& scratch) {
  std::vector<float> results;
  GuardedMatrix y(DType::f32, kTokens, kColumns, 0);
  const std::vector<float> ones(kTokens, 1.0f);
  for (int64_t e = 0; e < block.experts(); ++e) {
    for (int64_t t = 0; t < kTokens; ++t) {
      const auto only = static_cast<int32_t>(e);
      ConstMatrix one = x.const_matrix();
      one.data = static_cast<const float*>(one.data) + t * one.stride;
      one.rows = 1;
      Matrix to = y.matrix();
      to.rows = 1;
      EXPECT_TRUE(run_experts(block, {1, 1, &only, ones.data()}, one, to, scratch, 1).ok());
      for (int64_t n = 0; n < kColumns; ++n) results.push_back(static_cast<float>(y.at(0, n)));
    }
  }
  return results;
}

TEST(RoutingFuzz, SumsOfTheChosenExperts) {
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  int64_t wrong = 0, draws = 0;
  for (const int64_t experts : {3, 8, 40}) {
    // One kernel for any number of rows: its bits do not depend on the rows beside one.
    const BlockShape shape{experts, kColumns, kColumns, kColumns};
    const MadeBlock made(testing::scheme_called("bf16"), shape, {ExpertFunction::Kind::silu, 1, 0, 0}, random(), 0);
    const ExpertBlock block = made.block();
    auto scratch = ExpertScratch::make(block, kTokens, kMostSlots, DType::f32, 1);
    ASSERT_TRUE(scratch.ok());
    GuardedMatrix x(DType::f32, kTokens, kColumns, 0), y(DType::f32, kTokens, kColumns, 0);
    std::normal_distribution<float> normal;
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t k = 0; k < kColumns; ++k) x.set(t, k, normal(random));
    }
    const std::vector<float> alone = made_alone(block, x, *scratch);
    for (int draw = 0; draw < 34'000; ++draw, ++draws) {
      const int64_t tokens = 1 + static_cast<int64_t>(random() % kTokens);
      const int64_t top_k = 1 + static_cast<int64_t>(random() % kMostSlots);
      const MadeRouting routing = made_routing(tokens, top_k, experts, static_cast<Load>(random() % 4), random);
      ConstMatrix some_x = x.const_matrix();
      Matrix some_y = y.matrix();
      some_x.rows = some_y.rows = tokens;
      ASSERT_TRUE(run_experts(block, routing.view(), some_x, some_y, *scratch, 1).ok());
      const auto* found = static_cast<const float*>(some_y.data);
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t n = 0; n < kColumns; ++n) {
          float sum = 0;
          for (int64_t s = 0; s < top_k; ++s) {
            const auto entry = static_cast<size_t>(t * top_k + s);
            sum += routing.weights[entry] *
                   alone[static_cast<size_t>((routing.experts[entry] * kTokens + t) * kColumns + n)];
          }
          if (found[t * kColumns + n] == sum || ++wrong > 1) continue;
          ADD_FAILURE() << experts << " experts, draw " << draw << ", token " << t << ", column " << n << ": "
                        << found[t * kColumns + n] << " instead of " << sum;
        }
      }
      ASSERT_EQ(wrong, 0);
    }
  }
  EXPECT_GE(draws, 100'000);
}

}  // namespace
}  // namespace gearshift
