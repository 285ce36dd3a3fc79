#include "measure/timer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "measure/activations.h"

namespace gearshift {
namespace {

TEST(Timer, NearestRanks) {
  std::vector<double> samples;
  for (int i = 10; i >= 1; --i) samples.push_back(i);
  const Timing timing = summarize(samples);
  EXPECT_EQ(timing.median_us, 5);
  EXPECT_EQ(timing.p10_us, 1);
  EXPECT_EQ(timing.p90_us, 9);
  EXPECT_EQ(timing.samples, 10);
  const Timing one = summarize({3});
  EXPECT_EQ(one.p10_us, 3);
  EXPECT_EQ(one.p90_us, 3);
}

TEST(Timer, TheErrorOfTheMedianIsThatOfItsNeighbours) {
  // Normal samples: 1.2533 sigma / sqrt(n), whatever a fifth of them was disturbed by.
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(1000, 10);
  std::vector<double> samples;
  for (int i = 0; i < 4000; ++i) samples.push_back(noise(random));
  EXPECT_NEAR(summarize(samples).error_us, 1.2533 * 10 / std::sqrt(4000.0), 0.03);
  for (size_t i = 0; i < samples.size(); i += 5) samples[i] += 1e6;
  EXPECT_NEAR(summarize(samples).error_us, 1.2533 * 10 / std::sqrt(4000.0), 0.09);
  EXPECT_EQ(summarize({7, 7, 7}).error_us, 0);
  EXPECT_EQ(summarize({7}).error_us, 0);
}

TEST(Timer, StopsAtEitherLimit) {
  int calls = 0;
  EXPECT_EQ(time_calls([&] { ++calls; }, {5, std::chrono::seconds(100)}).samples, 5);
  EXPECT_EQ(calls, 6);  // one to warm up
  calls = 0;
  EXPECT_EQ(time_calls([&] { ++calls; }, {5, std::chrono::microseconds(0)}).samples, 1);
  EXPECT_EQ(calls, 2);
}

TEST(ProbeSizes, EdgesBatchesAndOneOffMultiplesOfEight) {
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(probe_sizes(1, 16, {1, 8, 16, 64}), (Sizes{1, 8, 13, 16}));
  EXPECT_EQ(probe_sizes(17, 0, {1, 8, 64, 256}), (Sizes{17, 29, 33, 64, 256}));
  EXPECT_EQ(probe_sizes(3, 3, {}), (Sizes{3}));
  EXPECT_EQ(probe_sizes(1, 1000000, {8}), (Sizes{1, 8, 13, 33}));  // an edge far beyond every batch
  for (const auto& [min, max] : {std::pair<int64_t, int64_t>{1, 0}, {17, 64}, {1, 16}, {65, 0}}) {
    const auto sizes = probe_sizes(min, max, {1, 8, 16, 64});
    EXPECT_TRUE(std::any_of(sizes.begin(), sizes.end(), [](int64_t m) { return m % 8 != 0 && m > 1; })) << min;
  }
}

TEST(Activations, RowsDoNotDependOnTheBatch) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    auto few = allocate_matrix(dtype, 7, 300, "few"), many = allocate_matrix(dtype, 40, 300, "many");
    make_activations(few->view(), 11, 1, 1e6f);
    make_activations(many->view(), 11, 2, 1e6f);
    EXPECT_EQ(std::memcmp(few->bytes.data(), many->bytes.data(), few->bytes.size()), 0);
    auto other = allocate_matrix(dtype, 7, 300, "other");
    make_activations(other->view(), 12, 1, 1e6f);
    EXPECT_NE(std::memcmp(few->bytes.data(), other->bytes.data(), few->bytes.size()), 0);
  }
}

TEST(Activations, KindsOfRows) {
  const int64_t k = 4096;
  auto x = allocate_matrix(DType::f16, 8, k, "x");
  make_activations(x->view(), 5, 1, 1e6f);
  const auto row = [&](int64_t r, auto&& visit) {
    for (int64_t i = 0; i < k; ++i) visit(load_element(x->bytes.data(), DType::f16, r * k + i));
  };
  double sum = 0, squares = 0;
  row(1, [&](float v) { sum += v, squares += static_cast<double>(v) * v; });
  EXPECT_LT(std::abs(sum / k), 0.1);
  EXPECT_NEAR(squares / k, 1, 0.15);
  float largest = 0;
  row(0, [&](float v) { largest = std::max(largest, std::abs(v)); });
  EXPECT_GT(largest, 20);
  row(3, [](float v) { EXPECT_EQ(v, 0); });
  int64_t subnormal = 0;
  row(5, [&](float v) { subnormal += v != 0 && std::abs(v) < 0x1p-14f; });
  EXPECT_GT(subnormal, k / 2);
}

TEST(Activations, NotEnoughMemoryIsAnError) {
  const auto matrix = allocate_matrix(DType::f32, int64_t{1} << 31, int64_t{1} << 27, "input of layer a");
  ASSERT_FALSE(matrix.ok());
  EXPECT_EQ(matrix.error().code, ErrorCode::runtime);
  EXPECT_NE(matrix.error().message().find("input of layer a"), std::string::npos);
}

}  // namespace
}  // namespace gearshift
