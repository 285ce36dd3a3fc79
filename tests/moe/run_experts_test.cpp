// Whole expert blocks, stage by stage: what each stage wrote is held against float64 of what it read.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <random>

#include "moe/made_block.h"

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

using testing::BlockShape;
using testing::GuardedMatrix;
using testing::Load;
using testing::made_routing;
using testing::MadeBlock;
using testing::MadeRouting;
using testing::scheme_called;
using Kind = ExpertFunction::Kind;

constexpr ExpertFunction kSilu{Kind::silu, 1, 0, 0};
constexpr ExpertFunction kClamped{Kind::silu, 1.702f, 7, 1};

double value(const ConstMatrix& m, int64_t row, int64_t column) {
  return testing::read(m.data, m.dtype, row * m.stride + column);
}

class RunExperts : public ::testing::Test {
 protected:
  RunExperts() : seed_(std::random_device{}()), random_(seed_), trace_(__FILE__, __LINE__, std::to_string(seed_)) {}

  GuardedMatrix made_x(int64_t tokens, int64_t k, DType dtype) {
    GuardedMatrix x(dtype, tokens, k, 3);
    std::normal_distribution<float> draw(0, 0.2f);
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t i = 0; i < k; ++i) x.set(t, i, draw(random_));
    }
    return x;
  }

  // Sorted rows of a projection's output against the reference of its kernels.
  void expect_projection(const ExpertBlock::Projection& projection, const SortedTokens& sorted, const ConstMatrix& in,
                         const ConstMatrix& out, const std::vector<int64_t>& in_row) {
    const LayerSpec& layer = projection.layer->plan->layer;
    for (int64_t e = 0; e < layer.experts; ++e) {
      const int64_t rows = sorted.rows_of(e), begin = sorted.first[static_cast<size_t>(e)];
      if (rows == 0) continue;
      const Kernel& kernel = *range_for(*projection.layer->plan->decision, rows).kernel;
      std::vector<int64_t> which(in_row.begin() + begin, in_row.begin() + begin + rows);
      std::vector<double> wanted(static_cast<size_t>(rows * layer.n)), magnitude(wanted.size());
      reference_rows(projection.layer->weights[static_cast<size_t>(e)], in, which, kernel.activation, wanted.data(),
                     magnitude.data(), 2);
      int64_t wrong = 0;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t n = 0; n < layer.n; ++n) {
          const auto i = static_cast<size_t>(r * layer.n + n);
          const double found = value(out, begin + r, n);
          if (within_bound(kernel, layer.k, magnitude[i], wanted[i], found, out.dtype) || ++wrong > 1) continue;
          ADD_FAILURE() << kernel.name << ", expert " << e << ", row " << r << " of " << rows << ", column " << n
                        << ": " << found << " instead of " << wanted[i];
        }
      }
      EXPECT_EQ(wrong, 0);
    }
  }

  void expect_block(const MadeBlock& made, const MadeRouting& routing, DType dtype, int threads) {
    const ExpertBlock block = made.block();
    const int64_t tokens = routing.tokens, entries = tokens * routing.top_k;
    auto scratch = ExpertScratch::make(block, tokens, routing.top_k, dtype, threads);
    ASSERT_TRUE(scratch.ok()) << scratch.error().message();
    scratch->poison(0xFF);
    GuardedMatrix x = made_x(tokens, made.shape.k, dtype), y(dtype, tokens, made.shape.n, 5);
    const auto ran = run_experts(block, routing.view(), x.const_matrix(), y.matrix(), *scratch, threads);
    ASSERT_TRUE(ran.ok()) << ran.error().message();
    ASSERT_TRUE(x.intact());
    ASSERT_TRUE(y.intact());

    const SortedTokens& sorted = scratch->sorted();
    std::vector<int64_t> tokens_of, rows(static_cast<size_t>(entries));
    for (int64_t i = 0; i < entries; ++i) {
      tokens_of.push_back(sorted.entry[static_cast<size_t>(i)] / routing.top_k);
      rows[static_cast<size_t>(i)] = i;
    }
    const bool tied = !block.projection(0).splits_tokens;
    if (!tied) {
      expect_projection(block.projection(0), sorted, x.const_matrix(), scratch->projected(entries), tokens_of);
      expect_projection(block.projection(1), sorted, scratch->activated(entries), scratch->outputs(entries), rows);
    }
    expect_functions(made, *scratch, entries);
    // The sums, in fp32 in the order of slots.
    const ConstMatrix out = scratch->outputs(entries);
    int64_t wrong = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t n = 0; n < made.shape.n; ++n) {
        double sum = 0, magnitude = 0;
        for (int64_t s = 0; s < routing.top_k; ++s) {
          const auto entry = static_cast<size_t>(t * routing.top_k + s);
          const double product = static_cast<double>(routing.weights[entry]) * value(out, sorted.place[entry], n);
          sum += product;
          magnitude += std::abs(product);
        }
        const double allowed = magnitude * 0x1p-24 * static_cast<double>(routing.top_k + 1) +
                               std::abs(sum) * unit_roundoff(dtype) + 0x1p-25;
        if (!(std::abs(y.at(t, n) - sum) <= allowed) && ++wrong == 1)
          ADD_FAILURE() << "token " << t << ", column " << n << ": " << y.at(t, n) << " instead of " << sum;
      }
    }
    EXPECT_EQ(wrong, 0);
  }

  void expect_functions(const MadeBlock& made, const ExpertScratch& scratch, int64_t entries) {
    const ConstMatrix projected = scratch.projected(entries), activated = scratch.activated(entries);
    const ExpertRowOrder order{made.shape.gated, made.shape.interleaved};
    GuardedMatrix row(activated.dtype, 1, made.shape.hidden, 0);
    for (int64_t i = 0; i < entries; ++i) {
      const auto* from = static_cast<const uint8_t*>(projected.data) +
                         static_cast<size_t>(i * projected.stride) * testing::element_bytes(projected.dtype);
      apply_function(made.function, order, projected.dtype, from, made.shape.hidden, row.matrix().data);
      for (int64_t h = 0; h < made.shape.hidden; ++h) ASSERT_EQ(row.at(0, h), value(activated, i, h)) << i << ' ' << h;
    }
  }

  std::vector<double> run_once(const MadeBlock& made, const MadeRouting& routing, GuardedMatrix& x, int threads,
                               bool one_by_one = false) {
    const ExpertBlock block = made.block();
    auto scratch = ExpertScratch::make(block, routing.tokens, routing.top_k, x.dtype, threads);
    EXPECT_TRUE(scratch.ok());
    GuardedMatrix y(x.dtype, routing.tokens, made.shape.n, 0);
    const auto ran = (one_by_one ? run_experts_one_by_one : run_experts)(block, routing.view(), x.const_matrix(),
                                                                         y.matrix(), *scratch, threads);
    EXPECT_TRUE(ran.ok()) << ran.error().message();
    std::vector<double> values;
    for (int64_t t = 0; t < routing.tokens; ++t) {
      for (int64_t n = 0; n < made.shape.n; ++n) values.push_back(y.at(t, n));
    }
    return values;
  }

  uint64_t seed_;
  std::mt19937_64 random_;
  ::testing::ScopedTrace trace_;
};

// Every family in which checkpoints store experts, few and many tokens, with and without biases.
TEST_F(RunExperts, EveryFamily) {
  struct Stored {
    const char* scheme;
    BlockShape shape;
    ExpertFunction function = kSilu;
  };
  BlockShape usual{6, 128, 128, 144}, biased = usual, gpt_oss{5, 96, 64, 96}, plain = usual, stack = usual;
  biased.bias = true;
  gpt_oss.bias = gpt_oss.interleaved = gpt_oss.stacked = true;
  plain.gated = false;
  stack.stacked = true;
  const Stored stored[] = {{"nvfp4 compressed-tensors", usual},
                           {"nvfp4 modelopt", plain, {Kind::relu2, 1, 0, 0}},
                           {"nvfp4 awq", usual},
                           {"nvfp4 weight only", usual},
                           {"mxfp4 weight only", gpt_oss, kClamped},
                           {"mxfp4", usual},
                           {"fp8 tensor", usual},
                           {"fp8 static", usual},
                           {"fp8 channel token", biased},
                           {"fp8 dynamic tensor", usual},
                           {"fp8 block", usual, {Kind::silu, 1, 10, 0}},
                           {"mxfp8", usual},
                           {"int4 packed", usual},
                           {"int4 packed act-order", usual},
                           {"awq", usual},
                           {"int4 int8", usual},
                           {"int8 channel token", usual},
                           {"bf16", stack, {Kind::gelu, 1, 0, 0}},
                           {"bf16 transposed", stack, {Kind::gelu_tanh, 1, 0, 0}},
                           {"fp32", usual}};
  for (const Stored& s : stored) {
    SCOPED_TRACE(s.scheme);
    const MadeBlock made(scheme_called(s.scheme), s.shape, s.function, random_());
    for (const int64_t tokens : {1, 7, 40}) {
      for (const Load load : {Load::uniform, Load::one_expert}) {
        expect_block(made, made_routing(tokens, 2, s.shape.experts, load, random_), DType::bf16, 2);
      }
    }
  }
}

TEST_F(RunExperts, EveryTypeOfActivations) {
  const MadeBlock made(scheme_called("int4 packed"), {5, 128, 64, 96}, kSilu, random_());
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    expect_block(made, made_routing(9, 3, 5, Load::skewed, random_), dtype, 2);
}

// Rows of an expert divided among threads, and tokens of one.
TEST_F(RunExperts, TilesOfRowsAndTokens) {
  for (const char* scheme : {"nvfp4 compressed-tensors", "fp8 block", "bf16"}) {
    SCOPED_TRACE(scheme);
    BlockShape shape{4, 64, 272, 528};
    shape.bias = true;
    const MadeBlock made(scheme_called(scheme), shape, kSilu, random_());
    expect_block(made, made_routing(1, 1, 4, Load::uniform, random_), DType::bf16, 3);
    expect_block(made, made_routing(300, 2, 4, Load::one_expert, random_), DType::bf16, 3);
    const ExpertBlock block = made.block();
    auto scratch = ExpertScratch::make(block, 1, 1, DType::bf16, 3);
    ASSERT_TRUE(scratch.ok());
    GuardedMatrix x = made_x(1, 64, DType::bf16), y(DType::bf16, 1, 528, 0);
    const MadeRouting one = made_routing(1, 1, 4, Load::uniform, random_);
    ASSERT_TRUE(run_experts(block, one.view(), x.const_matrix(), y.matrix(), *scratch, 3).ok());
    EXPECT_GE(scratch->tiles(0).size(), 2u) << "one expert on three threads";
    EXPECT_EQ(scratch->tiles(1).size(), 2u);
  }
}

// Experts 8 to 512, top-k 1 to 10, loads of every kind: grouped, one by one, and with other threads the same bits.
TEST_F(RunExperts, SameBitsWhoeverRunsThem) {
  for (const int64_t experts : {8, 64, 512}) {
    const BlockShape shape{experts, 32, 32, 48};
    const MadeBlock made(scheme_called("mxfp4"), shape, kSilu, random_());
    for (const int64_t top_k : {1, 4, 10}) {
      for (const Load load : {Load::uniform, Load::skewed, Load::one_expert, Load::first_half}) {
        const int64_t tokens = 1 + static_cast<int64_t>(random_() % 24);
        const MadeRouting routing = made_routing(tokens, top_k, experts, load, random_);
        GuardedMatrix x = made_x(tokens, 32, DType::bf16);
        const std::vector<double> wanted = run_once(made, routing, x, 1);
        EXPECT_EQ(wanted, run_once(made, routing, x, 1)) << "repeated";
        EXPECT_EQ(wanted, run_once(made, routing, x, 4));
        EXPECT_EQ(wanted, run_once(made, routing, x, 2, true)) << "one by one";
      }
    }
  }
}

// With one kernel for all batch sizes a token's bits do not depend on the tokens beside it.
TEST_F(RunExperts, OneKernelForAllGivesATokenTheSameBitsAmongAnyOthers) {
  for (const char* scheme : {"nvfp4 compressed-tensors", "fp8 block", "int4 packed", "bf16"}) {
    SCOPED_TRACE(scheme);
    const BlockShape shape{8, 128, 64, 64};
    const MadeBlock made(scheme_called(scheme), shape, kSilu, random_(), 0);
    for (const auto* projection : {&made.first, &made.second}) ASSERT_EQ(projection->plan.decision->ranges.size(), 1u);
    const MadeRouting routing = made_routing(33, 2, 8, Load::skewed, random_);
    GuardedMatrix x = made_x(33, 128, DType::bf16);
    const std::vector<double> together = run_once(made, routing, x, 2);
    for (const int64_t token : {0, 7, 32}) {
      MadeRouting alone{1, 2, {}, {}};
      GuardedMatrix own(DType::bf16, 1, 128, 0);
      for (int64_t k = 0; k < 128; ++k) own.set(0, k, static_cast<float>(x.at(token, k)));
      for (int64_t s = 0; s < 2; ++s) {
        alone.experts.push_back(routing.experts[static_cast<size_t>(2 * token + s)]);
        alone.weights.push_back(routing.weights[static_cast<size_t>(2 * token + s)]);
      }
      const std::vector<double> found = run_once(made, alone, own, 2);
      EXPECT_EQ(found, std::vector<double>(together.begin() + token * 64, together.begin() + (token + 1) * 64));
    }
  }
}

// The whole block against its float64 reference: nothing but the roundings of the type lies between them.
TEST_F(RunExperts, WholeBlockAgainstFloat64) {
  const BlockShape shape{6, 64, 64, 64};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const MadeBlock made(scheme_called("int4 packed"), shape, kClamped, random_());
    const ExpertBlock block = made.block();
    const MadeRouting routing = made_routing(11, 3, 6, Load::skewed, random_);
    GuardedMatrix x = made_x(11, 64, dtype);
    const std::vector<double> found = run_once(made, routing, x, 2);
    std::vector<int64_t> rows(11);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
    std::vector<double> wanted(found.size());
    reference_experts(block, routing.view(), x.const_matrix(), rows, dtype, wanted.data(), 2);
    double error = 0, norm = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      error += (found[i] - wanted[i]) * (found[i] - wanted[i]);
      norm += wanted[i] * wanted[i];
    }
    EXPECT_GT(norm, 0);
    EXPECT_LT(std::sqrt(error / norm), 6 * unit_roundoff(dtype) + 2e-6);
  }
}

TEST_F(RunExperts, NoTokens) {
  const MadeBlock made(scheme_called("bf16"), {4, 32, 32, 32}, kSilu, random_());
  const ExpertBlock block = made.block();
  auto scratch = ExpertScratch::make(block, 3, 2, DType::bf16, 2);
  ASSERT_TRUE(scratch.ok());
  EXPECT_TRUE(run_experts(block, {0, 2, nullptr, nullptr}, {nullptr, DType::bf16, 0, 32, 32},
                          {nullptr, DType::bf16, 0, 32, 32}, *scratch, 2)
                  .ok());
  expect_block(made, made_routing(3, 2, 4, Load::uniform, random_), DType::bf16, 2);
}

TEST_F(RunExperts, AllocatesNothing) {
  const MadeBlock made(scheme_called("nvfp4 compressed-tensors"), {8, 64, 64, 64}, kSilu, random_());
  const ExpertBlock block = made.block();
  auto scratch = ExpertScratch::make(block, 40, 2, DType::bf16, 2);
  ASSERT_TRUE(scratch.ok());
  const MadeRouting routing = made_routing(40, 2, 8, Load::skewed, random_);
  GuardedMatrix x = made_x(40, 64, DType::bf16), y(DType::bf16, 40, 64, 0);
  const int64_t before = allocations;
  bool ok = true;
  for (const int64_t tokens : {40, 1, 17}) {
    ConstMatrix some_x = x.const_matrix();
    Matrix some_y = y.matrix();
    some_x.rows = some_y.rows = tokens;
    ok = ok &&
         run_experts(block, {tokens, 2, routing.experts.data(), routing.weights.data()}, some_x, some_y, *scratch, 2)
             .ok();
  }
  EXPECT_EQ(allocations, before);
  EXPECT_TRUE(ok);
}

TEST_F(RunExperts, RefusesWhatDoesNotFit) {
  const MadeBlock made(scheme_called("bf16"), {4, 32, 16, 48}, kSilu, random_());
  const ExpertBlock block = made.block();
  auto scratch = ExpertScratch::make(block, 3, 2, DType::bf16, 2);
  ASSERT_TRUE(scratch.ok());
  MadeRouting routing = made_routing(3, 2, 4, Load::uniform, random_);
  GuardedMatrix x = made_x(3, 32, DType::bf16), y(DType::bf16, 3, 48, 0);
  const auto expect_refused = [&](const RoutedTokens& routed, ConstMatrix in, Matrix out, int threads,
                                  const std::string& word) {
    const auto ran = run_experts(block, routed, in, out, *scratch, threads);
    ASSERT_FALSE(ran.ok()) << word;
    EXPECT_EQ(ran.error().code, ErrorCode::usage);
    EXPECT_NE(ran.error().message().find(word), std::string::npos) << ran.error().message();
    EXPECT_TRUE(std::isnan(y.at(0, 0))) << "nothing is written";
  };
  const RoutedTokens good = routing.view();
  const ConstMatrix in = x.const_matrix();
  const Matrix out = y.matrix();
  const auto changed = [](auto value, const auto& change) {
    change(value);
    return value;
  };
  expect_refused(changed(good, [](auto& r) { r.tokens = 4; }), in, out, 2, "tokens");
  expect_refused(changed(good, [](auto& r) { r.top_k = 3; }), in, out, 2, "top_k");
  expect_refused(changed(good, [](auto& r) { r.weights = nullptr; }), in, out, 2, "null");
  expect_refused(good, changed(in, [](auto& m) { m.rows = 2; }), out, 2, "2 rows");
  expect_refused(good, changed(in, [](auto& m) { m.cols = 31; }), out, 2, "31 columns");
  expect_refused(good, changed(in, [](auto& m) { m.stride = 8; }), out, 2, "stride 8");
  expect_refused(good, changed(in, [](auto& m) { m.dtype = DType::f16; }), out, 2, "F16");
  expect_refused(good, in, changed(out, [](auto& m) { m.cols = 47; }), 2, "47 columns");
  expect_refused(good, in, out, 3, "threads");
  routing.experts[3] = 4;
  expect_refused(good, in, out, 2, "expert of token 1, slot 1");
  routing.experts[3] = -1;
  expect_refused(good, in, out, 2, "-1");
}

TEST_F(RunExperts, RefusesBlocksThatAreNone) {
  const MadeBlock made(scheme_called("bf16"), {4, 32, 16, 48}, kSilu, random_());
  const MadeBlock other(scheme_called("bf16"), {5, 32, 24, 48}, kSilu, random_());
  const auto refused = [](const PreparedLayer& first, const PreparedLayer& second, const ExpertFunction& function) {
    const auto block = ExpertBlock::make(first, second, function);
    return block.ok() ? std::string("made") : block.error().message();
  };
  EXPECT_NE(refused(made.first.prepared, other.second.prepared, kSilu).find("5 experts"), std::string::npos);
  EXPECT_NE(refused(made.second.prepared, made.first.prepared, kSilu).find("K = 32"), std::string::npos);
  EXPECT_NE(refused(made.first.prepared, made.second.prepared, {}).find("function"), std::string::npos);
}

}  // namespace
}  // namespace gearshift
