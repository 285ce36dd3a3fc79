#include "gearshift/run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> allocations{0};
}

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace gearshift {
namespace {

int launches = 0;
std::string_view last_kernel;

// Every output element is the sum of its row of x, plus the number of the expert.
template <int which>
void sum_rows(const RunArgs& args) {
  ++launches;
  last_kernel = which == 0 ? "small" : "large";
  const auto* x = static_cast<const float*>(args.x.data);
  auto* y = static_cast<float*>(args.y.data);
  for (int64_t row = 0; row < args.x.rows; ++row) {
    float sum = args.weights->parts[0].weight_global;
    for (int64_t k = 0; k < args.x.cols; ++k) sum += x[row * args.x.stride + k];
    for (int64_t n = 0; n < args.y.cols; ++n) y[row * args.y.stride + n] = sum;
  }
}

Kernel stub(std::string_view name, void (*run)(const RunArgs&)) {
  Kernel kernel;
  kernel.name = name;
  kernel.run = run;
  kernel.workspace_bytes = [](const LayerSpec&, int64_t m, int threads) { return m * threads * 8; };
  kernel.contract.dtypes = {DType::f32};
  return kernel;
}
const Kernel small = stub("small", sum_rows<0>);
const Kernel large = stub("large", sum_rows<1>);

class Run : public testing::Test {
 protected:
  Run() {
    plan_.layer.name = "layer";
    plan_.layer.n = 3;
    plan_.layer.k = 4;
    auto decision = std::make_shared<Decision>();
    for (const auto& [min, max, kernel] : {std::tuple{1, 4, &small}, {5, 0, &large}}) {
      PlannedRange range;
      range.m_min = min;
      range.m_max = max;
      range.kernel = kernel;
      decision->ranges.push_back(range);
    }
    plan_.decision = decision;
    prepared_.plan = &plan_;
    for (int expert = 0; expert < 2; ++expert) {
      LayerWeights weights;
      weights.spec = &plan_.layer;
      weights.parts.resize(1);
      weights.parts[0].weight_global = static_cast<float>(expert);
      prepared_.weights.push_back(weights);
    }
    launches = 0;
  }
  ConstMatrix x(int64_t rows) const { return {x_, DType::f32, rows, 4, 5}; }
  Matrix y(int64_t rows) { return {y_, DType::f32, rows, 3, 3}; }
  void expect_refused(ConstMatrix x, Matrix y, std::span<uint8_t> workspace, int threads, int64_t expert,
                      const std::string& word) {
    y_[0] = -7;
    const auto result = run(prepared_, x, y, workspace, threads, expert);
    ASSERT_FALSE(result.ok()) << word;
    EXPECT_EQ(result.error().code, ErrorCode::usage);
    EXPECT_NE(result.error().message().find(word), std::string::npos) << result.error().message();
    EXPECT_EQ(launches, 0);
    EXPECT_EQ(y_[0], -7);
  }

  LayerPlan plan_;
  PreparedLayer prepared_;
  alignas(64) uint8_t workspace_[1024] = {};
  float x_[8 * 5] = {1, 2, 3, 4, 99, 5, 6, 7, 8, 99};
  float y_[8 * 3] = {};
};

TEST_F(Run, PicksTheRangeAndKeepsStrides) {
  for (int64_t m = 1; m <= 8; ++m) {
    ASSERT_TRUE(run(prepared_, x(m), y(m), workspace_, 1).ok());
    EXPECT_EQ(last_kernel, m <= 4 ? "small" : "large") << m;
  }
  EXPECT_EQ(y_[2], 10);
  EXPECT_EQ(y_[3], 26);
  ASSERT_TRUE(run(prepared_, x(2), y(2), workspace_, 1, 1).ok());
  EXPECT_EQ(y_[3], 27);
}

TEST_F(Run, AllocatesNothing) {
  ASSERT_TRUE(run(prepared_, x(1), y(1), workspace_, 1).ok());
  const int64_t before = allocations;
  bool ok = true;
  for (int64_t m = 0; m <= 8; ++m) ok = ok && run(prepared_, x(m), y(m), workspace_, 2).ok();
  EXPECT_EQ(allocations, before);
  EXPECT_TRUE(ok);
}

TEST_F(Run, Case74EmptyBatchThenANormalCall) {
  ASSERT_TRUE(run(prepared_, {nullptr, DType::f32, 0, 4, 4}, {nullptr, DType::f32, 0, 3, 3}, {}, 1).ok());
  EXPECT_EQ(launches, 0);
  ASSERT_TRUE(run(prepared_, x(1), y(1), workspace_, 1).ok());
  EXPECT_EQ(y_[0], 10);
}

TEST_F(Run, RefusesWhatDoesNotFit) {
  expect_refused({x_, DType::f32, 1, 5, 5}, y(1), workspace_, 1, 0, "5 columns");
  expect_refused(x(1), {y_, DType::f32, 1, 4, 4}, workspace_, 1, 0, "4 columns");
  expect_refused(x(2), y(1), workspace_, 1, 0, "1 rows");
  expect_refused({x_, DType::f32, -1, 4, 5}, y(-1), workspace_, 1, 0, "-1 rows");
  expect_refused({x_, DType::f32, 1, 4, 3}, y(1), workspace_, 1, 0, "stride 3");
  expect_refused(x(1), {y_, DType::f32, 1, 3, 2}, workspace_, 1, 0, "stride 2");
  expect_refused({nullptr, DType::f32, 1, 4, 5}, y(1), workspace_, 1, 0, "null");
  expect_refused({x_, DType::i8, 1, 4, 5}, y(1), workspace_, 1, 0, "I8");
  expect_refused({x_, DType::bf16, 1, 4, 5}, y(1), workspace_, 1, 0, "F32");
  expect_refused({x_, DType::bf16, 1, 4, 5}, {y_, DType::bf16, 1, 3, 3}, workspace_, 1, 0, "BF16");
  expect_refused(x(1), y(1), {workspace_, 7}, 1, 0, "7 bytes");
  expect_refused(x(1), y(1), {workspace_ + 8, 64}, 1, 0, "unaligned");
  expect_refused(x(1), y(1), workspace_, 0, 0, "threads");
  expect_refused(x(1), y(1), workspace_, 1, 2, "expert");
  expect_refused(x(1), y(1), workspace_, 1, -1, "expert");
}

TEST_F(Run, RefusesMoreOutputThanTheContractAllows) {
  Kernel limited = small;
  limited.contract.max_output_elements = 6;
  auto decision = std::make_shared<Decision>();
  decision->ranges.push_back({});
  decision->ranges[0].kernel = &limited;
  plan_.decision = decision;
  EXPECT_TRUE(run(prepared_, x(2), y(2), workspace_, 1).ok());
  launches = 0;
  expect_refused(x(3), y(3), workspace_, 1, 0, "at most 2");
}

}  // namespace
}  // namespace gearshift
