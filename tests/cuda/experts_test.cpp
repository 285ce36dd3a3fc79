// Whole expert blocks on the device, stage by stage: what each stage wrote is held against float64 of what it read.
#include <cmath>
#include <iostream>

#include "device/cuda.h"
#include "device_case.h"
#include "kernel/cuda/grouped.h"
#include "kernel/cuda/kernels.h"
#include "moe/made_block.h"

namespace gearshift::testing {
namespace {

using Kind = ExpertFunction::Kind;
constexpr ExpertFunction kSilu{Kind::silu, 1, 0, 0};
constexpr ExpertFunction kClamped{Kind::silu, 1.702f, 7, 1};

// Both projections, packed on the device for one kernel.
struct DeviceBlock {
  BlockShape shape;
  ExpertFunction function;
  MadeExperts first, second;

  DeviceBlock(const Named& named, const Kernel& kernel, const BlockShape& s, const ExpertFunction& f, uint64_t seed)
      : shape(s),
        function(f),
        first(named, s.experts, first_rows(s), s.k, s, seed),
        second(named, s.experts, {s.n}, s.hidden, s, seed + 1) {
    first.use_only(kernel);
    second.use_only(kernel);
  }
  static std::vector<int64_t> first_rows(const BlockShape& s) {
    if (!s.gated) return {s.hidden};
    if (s.interleaved || s.stacked) return {2 * s.hidden};
    return {s.hidden, s.hidden};
  }
  DeviceExperts experts() const {
    auto made = DeviceExperts::make(first.prepared, second.prepared, function);
    if (!made.ok()) throw std::runtime_error(made.error().message());
    return *std::move(made);
  }
};

DeviceBuffer on_device(const void* from, size_t bytes) {
  auto buffer = DeviceBuffer::allocate(bytes);
  if (!buffer.ok() || !buffer->write(from, bytes).ok()) throw std::runtime_error("no memory");
  return *std::move(buffer);
}

// A call's memory on the device, and on the host what it left there.
class ExpertCall {
 public:
  ExpertCall(const DeviceExperts& experts, const MadeRouting& routing, GuardedMatrix& x, uint8_t poison)
      : experts_(experts), routing_(routing), x_(x) {
    const Matrix from = x.matrix();
    x_there_ = on_device(from.data, static_cast<size_t>(from.rows * from.stride) * 2);
    ids_ = on_device(routing.experts.data(), routing.experts.size() * 4);
    weights_ = on_device(routing.weights.data(), routing.weights.size() * 4);
    const size_t y_bytes = static_cast<size_t>(routing.tokens * (experts.n() + kGap)) * 2;
    const std::vector<uint8_t> filled(y_bytes, 0xFF);
    y_there_ = on_device(filled.data(), y_bytes);
    const auto bytes = static_cast<size_t>(experts.workspace_bytes(routing.tokens, routing.top_k, x.dtype));
    const std::vector<uint8_t> poisoned(bytes + kGuard, poison);
    workspace_ = on_device(poisoned.data(), poisoned.size());
    host_.resize(bytes + kGuard);
    poison_ = poison;
  }
  Result<void> queue(void* stream, std::span<const std::string_view> tactics = {}) {
    const int64_t n = experts_.n();
    const RoutedTokens routed{routing_.tokens, routing_.top_k, reinterpret_cast<const int32_t*>(ids_.data()),
                              reinterpret_cast<const float*>(weights_.data())};
    const Matrix from = x_.matrix();
    return run_experts_on_device(experts_, routed, {x_there_.data(), x_.dtype, from.rows, from.cols, from.stride},
                                 {y_there_.data(), x_.dtype, routing_.tokens, n, n + kGap},
                                 {workspace_.data(), workspace_.size() - kGuard}, stream, tactics);
  }
  void read() {
    ASSERT_TRUE(cuda::synchronize().ok());
    ASSERT_TRUE(workspace_.read(host_.data(), host_.size()).ok());
    for (size_t i = host_.size() - kGuard; i < host_.size(); ++i) ASSERT_EQ(host_[i], poison_) << "past the workspace";
    std::vector<uint16_t> codes(y_there_.size() / 2);
    ASSERT_TRUE(y_there_.read(codes.data(), y_there_.size()).ok());
    y.clear();
    const int64_t n = experts_.n();
    for (int64_t t = 0; t < routing_.tokens; ++t) {
      for (int64_t i = 0; i < n + kGap; ++i) {
        if (i < n)
          y.push_back(testing::read(codes.data(), x_.dtype, t * (n + kGap) + i));
        else
          ASSERT_EQ(codes[static_cast<size_t>(t * (n + kGap) + i)], 0xFFFF) << "between rows of y";
      }
    }
  }
  DeviceExpertStages stages() { return experts_.stages(routing_.tokens, routing_.top_k, x_.dtype, host_.data()); }

  std::vector<double> y;  // [tokens, n]

 private:
  static constexpr int64_t kGap = 8;
  static constexpr size_t kGuard = 256;
  const DeviceExperts& experts_;
  const MadeRouting& routing_;
  GuardedMatrix& x_;
  DeviceBuffer x_there_, ids_, weights_, y_there_, workspace_;
  std::vector<uint8_t> host_;
  uint8_t poison_ = 0;
};

double value(const Matrix& m, int64_t row, int64_t column) { return read(m.data, m.dtype, row * m.stride + column); }

class DeviceExpertsTest : public ::testing::Test {
 protected:
  DeviceExpertsTest()
      : seed_(std::random_device{}()), random_(seed_), trace_(__FILE__, __LINE__, std::to_string(seed_)) {
    std::cout << "seed " << seed_ << "\n";
  }

  GuardedMatrix made_x(int64_t tokens, int64_t k, DType dtype) {
    GuardedMatrix x(dtype, tokens, k, 8);
    std::normal_distribution<float> draw(0, 0.2f);
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t i = 0; i < k; ++i) x.set(t, i, draw(random_));
    }
    return x;
  }

  void expect_order(const MadeRouting& routing, int64_t experts, const DeviceExpertStages& stages) {
    int32_t row = 0;
    for (int64_t e = 0; e < experts; ++e) {
      ASSERT_EQ(stages.first[e], row);
      for (size_t i = 0; i < routing.experts.size(); ++i) {
        if (routing.experts[i] != e) continue;
        ASSERT_EQ(stages.place[i], row);
        ASSERT_EQ(stages.token[row], static_cast<int32_t>(static_cast<int64_t>(i) / routing.top_k));
        ASSERT_EQ(stages.expert[row], e);
        ++row;
      }
    }
    ASSERT_EQ(stages.first[experts], row);
    for (size_t i = 0; i < routing.experts.size(); ++i) {
      const bool homeless = routing.experts[i] < 0 || routing.experts[i] >= experts;
      ASSERT_EQ(stages.place[i] < 0, homeless) << i;
    }
  }

  void expect_projection(const PreparedLayer& layer, const Kernel& kernel, const DeviceExpertStages& stages,
                         const ConstMatrix& in, const Matrix& out, const std::vector<int64_t>& in_row) {
    const LayerSpec& spec = layer.plan->layer;
    int64_t wrong = 0;
    for (int64_t e = 0; e < spec.experts; ++e) {
      const int64_t begin = stages.first[e], rows = stages.first[e + 1] - begin;
      if (rows == 0) continue;
      const std::vector<int64_t> which(in_row.begin() + begin, in_row.begin() + begin + rows);
      std::vector<double> wanted(static_cast<size_t>(rows * spec.n)), magnitude(wanted.size());
      reference_rows(layer.weights[static_cast<size_t>(e)], in, which, kernel.activation, wanted.data(),
                     magnitude.data(), kHostThreads);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t n = 0; n < spec.n; ++n) {
          const auto i = static_cast<size_t>(r * spec.n + n);
          const double found = value(out, begin + r, n);
          if (within_bound(kernel, spec.k, magnitude[i], wanted[i], found, out.dtype) || ++wrong > 1) continue;
          ADD_FAILURE() << kernel.name << ", expert " << e << ", row " << r << " of " << rows << ", column " << n
                        << ": " << found << " instead of " << wanted[i];
        }
      }
    }
    EXPECT_EQ(wrong, 0);
  }

  void expect_function(const DeviceBlock& made, const DeviceExpertStages& stages, int64_t rows) {
    const BlockShape& s = made.shape;
    const ExpertRowOrder order{s.gated, made.first.plan.layer.row_order == RowOrder::interleaved};
    GuardedMatrix wanted(DType::f32, 1, s.hidden, 0), projected(DType::f32, 1, stages.projected.cols, 0);
    int64_t wrong = 0;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < stages.projected.cols; ++c)
        projected.set(0, c, static_cast<float>(value(stages.projected, r, c)));
      apply_function(made.function, order, DType::f32, projected.matrix().data, s.hidden, wanted.matrix().data);
      for (int64_t h = 0; h < s.hidden; ++h) {
        const double reference = wanted.at(0, h), found = value(stages.activated, r, h);
        const double allowed = std::abs(reference) * (unit_roundoff(stages.activated.dtype) + 1e-5) + 0x1p-25;
        if (std::abs(found - reference) <= allowed || ++wrong > 1) continue;
        ADD_FAILURE() << "function, row " << r << ", column " << h << ": " << found << " instead of " << reference;
      }
    }
    EXPECT_EQ(wrong, 0);
  }

  void expect_sums(const MadeRouting& routing, const DeviceExpertStages& stages, const ExpertCall& call, DType dtype) {
    const int64_t n = stages.outputs.cols;
    int64_t wrong = 0;
    for (int64_t t = 0; t < routing.tokens; ++t) {
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0, magnitude = 0;
        for (int64_t s = 0; s < routing.top_k; ++s) {
          const auto entry = static_cast<size_t>(t * routing.top_k + s);
          if (stages.place[entry] < 0) continue;
          const double product =
              static_cast<double>(routing.weights[entry]) * value(stages.outputs, stages.place[entry], c);
          sum += product;
          magnitude += std::abs(product);
        }
        const double allowed = magnitude * 0x1p-24 * static_cast<double>(routing.top_k + 1) +
                               std::abs(sum) * unit_roundoff(dtype) + 0x1p-25;
        const double found = call.y[static_cast<size_t>(t * n + c)];
        if (std::abs(found - sum) <= allowed || ++wrong > 1) continue;
        ADD_FAILURE() << "token " << t << ", column " << c << ": " << found << " instead of " << sum;
      }
    }
    EXPECT_EQ(wrong, 0);
  }

  void expect_block(const DeviceBlock& made, const MadeRouting& routing, DType dtype,
                    std::span<const std::string_view> tactics = {}) {
    const DeviceExperts experts = made.experts();
    GuardedMatrix x = made_x(routing.tokens, made.shape.k, dtype);
    ExpertCall call(experts, routing, x, 0xFF);
    const auto ran = call.queue(nullptr, tactics);
    ASSERT_TRUE(ran.ok()) << ran.error().message();
    call.read();
    if (HasFatalFailure()) return;
    const DeviceExpertStages stages = call.stages();
    expect_order(routing, made.shape.experts, stages);
    if (HasFatalFailure()) return;
    const int64_t rows = stages.first[made.shape.experts];
    std::vector<int64_t> tokens_of(stages.token, stages.token + rows), own(static_cast<size_t>(rows));
    for (size_t i = 0; i < own.size(); ++i) own[i] = static_cast<int64_t>(i);
    expect_projection(made.first.prepared, experts.kernel(0), stages, x.const_matrix(), stages.projected, tokens_of);
    expect_function(made, stages, rows);
    const Matrix& in = stages.activated;
    expect_projection(made.second.prepared, experts.kernel(1), stages, {in.data, in.dtype, in.rows, in.cols, in.stride},
                      stages.outputs, own);
    expect_sums(routing, stages, call, dtype);
    // Again, in memory that holds something else.
    ExpertCall again(experts, routing, x, 0x3C);
    ASSERT_TRUE(again.queue(nullptr, tactics).ok());
    again.read();
    EXPECT_EQ(call.y, again.y) << "bits change from call to call";
  }

  uint64_t seed_;
  std::mt19937_64 random_;
  ::testing::ScopedTrace trace_;
};

struct Stored {
  const char* scheme;
  const Kernel* kernel;
  BlockShape shape;
  ExpertFunction function = kSilu;
};
std::vector<Stored> stored_experts() {
  BlockShape usual{6, 256, 384, 272}, biased = usual, gpt_oss{5, 2880, 192, 96}, plain = usual;
  biased.bias = true;
  gpt_oss.bias = gpt_oss.interleaved = gpt_oss.stacked = true;
  plain.gated = false;
  return {{"nvfp4 weight only", &sm80_nvfp4_w4a16_stream, usual},
          {"nvfp4 modelopt", &sm80_nvfp4_w4a16_stream, plain, {Kind::relu2, 1, 0, 0}},
          {"mxfp4 weight only", &sm80_mxfp4_stream, gpt_oss, kClamped},
          {"mxfp4", &sm80_mxfp4_stream, usual},
          {"int4 packed", &sm80_int4_w4a16_stream, usual},
          {"awq", &sm80_int4_w4a16_stream, biased, {Kind::gelu, 1, 0, 0}},
          {"fp8 tensor", &sm80_w8a16_fp8_stream, usual},
          {"fp8 channel token", &sm80_fp8_w8a8_stream, biased},
          {"fp8 block", &sm80_fp8_block_w8a8_stream, usual, {Kind::silu, 1, 10, 0}},
          {"mxfp8", &sm80_mxfp8_stream, usual, {Kind::gelu_tanh, 1, 0, 0}},
          {"int8 channel token", &sm80_int8_w8a8_stream, usual}};
}

TEST_F(DeviceExpertsTest, EveryFamily) {
  int ran = 0;
  for (const Stored& s : stored_experts()) {
    SCOPED_TRACE(s.scheme);
    const DeviceBlock made(scheme_called(s.scheme), *s.kernel, s.shape, s.function, random_());
    for (const DType dtype : {DType::bf16, DType::f16}) {
      for (const int64_t tokens : {1, 7, 70}) {
        for (const Load load : {Load::uniform, Load::skewed, Load::one_expert}) {
          expect_block(made, made_routing(tokens, 2, s.shape.experts, load, random_), dtype);
          if (HasFailure()) return;
          ++ran;
        }
      }
    }
  }
  std::cout << ran << " expert blocks\n";
}

// Experts 8 to 512, top-k 1 to 10, loads of every kind, up to many more entries than one block sorts.
TEST_F(DeviceExpertsTest, EveryLoad) {
  for (const int64_t experts : {8, 64, 512}) {
    const BlockShape shape{experts, 128, 64, 64};
    const DeviceBlock made(scheme_called("nvfp4 weight only"), sm80_nvfp4_w4a16_stream, shape, kSilu, random_());
    for (const int64_t top_k : {1, 2, 3, 4, 6, 8, 10}) {
      for (const Load load : {Load::uniform, Load::skewed, Load::one_expert, Load::first_half}) {
        for (const int64_t tokens : {int64_t{1}, 1 + static_cast<int64_t>(random_() % 60), int64_t{300}}) {
          expect_block(made, made_routing(tokens, top_k, experts, load, random_), DType::bf16);
          if (HasFailure()) {
            ADD_FAILURE() << experts << " experts, top-k " << top_k << ", " << tokens << " tokens";
            return;
          }
        }
      }
    }
  }
}

// Entries of experts that are another rank's.
TEST_F(DeviceExpertsTest, ExpertsThatAreNotHere) {
  const BlockShape shape{8, 128, 64, 64};
  const DeviceBlock made(scheme_called("nvfp4 weight only"), sm80_nvfp4_w4a16_stream, shape, kSilu, random_());
  for (const int64_t tokens : {1, 40, 700}) {
    MadeRouting routing = made_routing(tokens, 4, 8, Load::uniform, random_);
    for (size_t i = 0; i < routing.experts.size(); ++i) {
      if (i % 3 == 0) routing.experts[i] = i % 2 == 0 ? -1 : 8;
    }
    expect_block(made, routing, DType::bf16);
    std::fill(routing.experts.begin(), routing.experts.end(), -1);
    expect_block(made, routing, DType::bf16);
  }
}

TEST_F(DeviceExpertsTest, EveryTactic) {
  for (const Stored& s : stored_experts()) {
    SCOPED_TRACE(s.scheme);
    BlockShape shape = s.shape;
    shape.hidden = 448;
    const DeviceBlock made(scheme_called(s.scheme), *s.kernel, shape, s.function, random_());
    int ran = 0;
    for (const std::string_view tactic : cuda::grouped_tactics(*s.kernel)) {
      // Tiles are of 8 tokens for loads that need no more.
      const int64_t tokens = tactic.substr(0, 2) == "t1" ? 9 : 60;
      const std::string_view both[] = {tactic, tactic};
      const MadeRouting routing = made_routing(tokens, 2, shape.experts, Load::uniform, random_);
      const DeviceExperts experts = made.experts();
      GuardedMatrix x = made_x(tokens, shape.k, DType::bf16);
      if (!ExpertCall(experts, routing, x, 0).queue(nullptr, both).ok()) continue;
      SCOPED_TRACE(tactic);
      expect_block(made, routing, DType::bf16, both);
      if (HasFailure()) return;
      ++ran;
    }
    EXPECT_GE(ran, 4);
  }
}

// No launch waits for the host or allocates; a graph replayed with another choice of the router gives that one's
// answer.
TEST_F(DeviceExpertsTest, CapturedInAGraph) {
  const BlockShape shape{32, 256, 128, 256};
  const DeviceBlock made(scheme_called("nvfp4 weight only"), sm80_nvfp4_w4a16_stream, shape, kSilu, random_());
  const DeviceExperts experts = made.experts();
  for (const int64_t tokens : {1, 33, 600}) {
    const MadeRouting routing = made_routing(tokens, 4, 32, Load::skewed, random_);
    GuardedMatrix x = made_x(tokens, 256, DType::bf16);
    ExpertCall queued(experts, routing, x, 0xFF), recorded(experts, routing, x, 0xFF);
    ASSERT_TRUE(queued.queue(nullptr).ok());
    queued.read();
    auto graph = cuda::Graph::capture([&](void* stream) {
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(recorded.queue(stream).ok());
    });
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(graph->replay_us().ok());
    recorded.read();
    EXPECT_EQ(queued.y, recorded.y);
  }
}

TEST_F(DeviceExpertsTest, RefusesWhatDoesNotFit) {
  const BlockShape shape{4, 128, 64, 64};
  const DeviceBlock made(scheme_called("nvfp4 weight only"), sm80_nvfp4_w4a16_stream, shape, kSilu, random_());
  const DeviceBlock slow(scheme_called("nvfp4 weight only"), sm80_nvfp4_w4a16_emulation, shape, kSilu, random_());
  const auto refused = DeviceExperts::make(slow.first.prepared, slow.second.prepared, kSilu);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("sm80_nvfp4_w4a16_emulation"), std::string::npos);
  const DeviceExperts experts = made.experts();
  std::vector<uint8_t> small(64);
  const auto ran = run_experts_on_device(experts, {2, 2, nullptr, nullptr}, {nullptr, DType::bf16, 2, 128, 128},
                                         {nullptr, DType::bf16, 2, 64, 64}, small, nullptr);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message().find("workspace"), std::string::npos) << ran.error().message();
}

}  // namespace
}  // namespace gearshift::testing
