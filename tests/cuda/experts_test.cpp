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

  // `many`: for experts with more than 16 rows; nullptr: `kernel` for all.
  DeviceBlock(const Named& named, const Kernel& kernel, const BlockShape& s, const ExpertFunction& f, uint64_t seed,
              const Kernel* many = nullptr)
      : shape(s),
        function(f),
        first(named, s.experts, first_rows(s), s.k, s, seed),
        second(named, s.experts, {s.n}, s.hidden, s, seed + 1) {
    for (MadeExperts* projection : {&first, &second})
      many == nullptr ? projection->use_only(kernel) : projection->use_both(kernel, 16, *many);
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

// Which rows a call's stages have.
struct StageRows {
  std::vector<int64_t> token, expert, place;
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

  // Sorted rows as the device lists them, checked; else one row an entry.
  StageRows expect_order(const MadeRouting& routing, int64_t experts, const DeviceExpertStages& stages) {
    StageRows rows;
    const auto here = [&](int32_t e) { return e >= 0 && e < experts; };
    rows.place.assign(routing.experts.size(), -1);
    if (!stages.sorted) {
      for (size_t i = 0; i < routing.experts.size(); ++i) {
        rows.token.push_back(static_cast<int64_t>(i) / routing.top_k);
        rows.expert.push_back(here(routing.experts[i]) ? routing.experts[i] : -1);
        if (here(routing.experts[i])) rows.place[i] = static_cast<int64_t>(i);
      }
      return rows;
    }
    int64_t wrong = 0;
    for (int64_t e = 0; e < experts; ++e) {
      wrong += stages.first[e] != static_cast<int64_t>(rows.token.size()) ? 1 : 0;
      for (size_t i = 0; i < routing.experts.size(); ++i) {
        if (routing.experts[i] != e) continue;
        const auto row = static_cast<int64_t>(rows.token.size());
        rows.place[i] = row;
        rows.token.push_back(static_cast<int64_t>(i) / routing.top_k);
        rows.expert.push_back(e);
        wrong += stages.place[i] != row || stages.token[row] != rows.token.back() || stages.expert[row] != e ? 1 : 0;
      }
    }
    wrong += stages.first[experts] != static_cast<int64_t>(rows.token.size()) ? 1 : 0;
    for (size_t i = 0; i < routing.experts.size(); ++i)
      wrong += !here(routing.experts[i]) && stages.place[i] != -1 ? 1 : 0;
    EXPECT_EQ(wrong, 0) << "sorted rows";
    return rows;
  }

  // Float64 of a projection for all rows that there are, and what its kernel may be off by.
  struct Expected {
    std::vector<double> y, magnitude;  // [rows, n]
  };
  static Expected expected_of(const PreparedLayer& layer, const Kernel& kernel, const StageRows& rows,
                              const ConstMatrix& in, const std::vector<int64_t>& in_row) {
    const LayerSpec& spec = layer.plan->layer;
    const auto n = static_cast<size_t>(spec.n);
    Expected all;
    all.y.resize(rows.token.size() * n);
    all.magnitude.resize(all.y.size());
    for (int64_t e = 0; e < spec.experts; ++e) {
      std::vector<int64_t> which;
      std::vector<size_t> to;
      for (size_t r = 0; r < rows.expert.size(); ++r) {
        if (rows.expert[r] != e) continue;
        which.push_back(in_row[r]);
        to.push_back(r);
      }
      if (which.empty()) continue;
      std::vector<double> y(which.size() * n), magnitude(y.size());
      reference_rows(layer.weights[static_cast<size_t>(e)], in, which, kernel.activation, y.data(), magnitude.data(),
                     kHostThreads);
      for (size_t i = 0; i < to.size(); ++i) {
        std::copy_n(y.begin() + static_cast<int64_t>(i * n), n, all.y.begin() + static_cast<int64_t>(to[i] * n));
        std::copy_n(magnitude.begin() + static_cast<int64_t>(i * n), n,
                    all.magnitude.begin() + static_cast<int64_t>(to[i] * n));
      }
    }
    return all;
  }

  void expect_projection(const PreparedLayer& layer, const Kernel& kernel, const StageRows& rows,
                         const Expected& wanted, const Matrix& out) {
    const LayerSpec& spec = layer.plan->layer;
    int64_t wrong = 0;
    for (size_t r = 0; r < rows.expert.size(); ++r) {
      for (int64_t n = 0; n < spec.n && rows.expert[r] >= 0; ++n) {
        const size_t i = r * static_cast<size_t>(spec.n) + static_cast<size_t>(n);
        const double found = value(out, static_cast<int64_t>(r), n);
        if (within_bound(kernel, spec.k, wanted.magnitude[i], wanted.y[i], found, out.dtype) || ++wrong > 1) continue;
        ADD_FAILURE() << kernel.name << ", expert " << rows.expert[r] << ", row " << r << ", column " << n << ": "
                      << found << " instead of " << wanted.y[i];
      }
    }
    EXPECT_EQ(wrong, 0);
  }

  // The function of what was stored.
  void expect_function(const DeviceBlock& made, const StageRows& rows, const DeviceExpertStages& stages) {
    const BlockShape& s = made.shape;
    const ExpertRowOrder order{s.gated, made.first.plan.layer.row_order == RowOrder::interleaved};
    GuardedMatrix wanted(DType::f32, 1, s.hidden, 0), projected(DType::f32, 1, stages.projected.cols, 0);
    int64_t wrong = 0;
    for (size_t r = 0; r < rows.expert.size(); ++r) {
      const auto row = static_cast<int64_t>(r);
      if (rows.expert[r] < 0) continue;
      for (int64_t c = 0; c < stages.projected.cols; ++c)
        projected.set(0, c, static_cast<float>(value(stages.projected, row, c)));
      apply_function(made.function, order, DType::f32, projected.matrix().data, s.hidden, wanted.matrix().data);
      for (int64_t h = 0; h < s.hidden; ++h) {
        const double reference = wanted.at(0, h), found = value(stages.activated, row, h);
        const double allowed = std::abs(reference) * (unit_roundoff(stages.activated.dtype) + 1e-5) + 0x1p-25;
        if (std::abs(found - reference) <= allowed || ++wrong > 1) continue;
        ADD_FAILURE() << "function, row " << r << ", column " << h << ": " << found << " instead of " << reference;
      }
    }
    EXPECT_EQ(wrong, 0);
  }

  // The function of what was never stored: between its values where gate and up are off by as much as they may be.
  void expect_fused(const DeviceBlock& made, const Kernel& kernel, const StageRows& rows, const Expected& projected,
                    const DeviceExpertStages& stages) {
    const BlockShape& s = made.shape;
    const LayerSpec& spec = made.first.plan.layer;
    const bool interleaved = spec.row_order == RowOrder::interleaved;
    int64_t wrong = 0;
    for (size_t r = 0; r < rows.expert.size(); ++r) {
      for (int64_t h = 0; h < s.hidden && rows.expert[r] >= 0; ++h) {
        const int64_t columns[] = {interleaved ? 2 * h : h, interleaved ? 2 * h + 1 : s.hidden + h};
        double low = HUGE_VAL, high = -HUGE_VAL;
        for (int corner = 0; corner < 9; ++corner) {
          float in[2] = {}, out = 0;
          for (int i = 0; i < (s.gated ? 2 : 1); ++i) {
            const size_t at = r * static_cast<size_t>(spec.n) + static_cast<size_t>(columns[i]);
            const double off = error_bound(kernel, spec.k, projected.magnitude[at], projected.y[at], DType::f32);
            in[i] = static_cast<float>(projected.y[at] + off * ((i == 0 ? corner % 3 : corner / 3) - 1));
          }
          apply_function(made.function, {s.gated, true}, DType::f32, in, 1, &out);
          low = std::min<double>(low, out);
          high = std::max<double>(high, out);
        }
        const double found = value(stages.activated, static_cast<int64_t>(r), h);
        const double rounding =
            std::max(std::abs(low), std::abs(high)) * (unit_roundoff(stages.activated.dtype) + 1e-5) + (high - low) +
            0x1p-25;
        if ((found >= low - rounding && found <= high + rounding) || ++wrong > 1) continue;
        ADD_FAILURE() << "function, row " << r << ", column " << h << ": " << found << " not within " << low << " .. "
                      << high;
      }
    }
    EXPECT_EQ(wrong, 0);
  }

  void expect_sums(const MadeRouting& routing, const StageRows& rows, const DeviceExpertStages& stages,
                   const ExpertCall& call, DType dtype) {
    const int64_t n = stages.outputs.cols;
    int64_t wrong = 0;
    for (int64_t t = 0; t < routing.tokens; ++t) {
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0, magnitude = 0;
        for (int64_t s = 0; s < routing.top_k; ++s) {
          const auto entry = static_cast<size_t>(t * routing.top_k + s);
          if (rows.place[entry] < 0) continue;
          const double product =
              static_cast<double>(routing.weights[entry]) * value(stages.outputs, rows.place[entry], c);
          sum += product;
          magnitude += std::abs(product);
        }
        const double allowed = magnitude * 0x1p-24 * static_cast<double>(routing.top_k + 1) +
                               std::abs(sum) * unit_roundoff(dtype) + 0x1p-25;
        const double found = call.y[static_cast<size_t>(t * n + c)];
        if (found == sum || std::abs(found - sum) <= allowed || ++wrong > 1) continue;  // equal infinities, too
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
    const StageRows rows = expect_order(routing, made.shape.experts, stages);
    std::vector<int64_t> own(rows.token.size());
    for (size_t i = 0; i < own.size(); ++i) own[i] = static_cast<int64_t>(i);
    const auto kernel = [&](int which) -> const Kernel& {
      return experts.kernel(which, routing.tokens, routing.top_k, dtype);
    };
    const PreparedLayer &first = made.first.prepared, &second = made.second.prepared;
    const Expected projected = expected_of(first, kernel(0), rows, x.const_matrix(), rows.token);
    if (stages.projected.data == nullptr) {
      expect_fused(made, kernel(0), rows, projected, stages);
    } else {
      expect_projection(first, kernel(0), rows, projected, stages.projected);
      expect_function(made, rows, stages);
    }
    const Matrix& in = stages.activated;
    const ConstMatrix activated{in.data, in.dtype, in.rows, in.cols, in.stride};
    expect_projection(second, kernel(1), rows, expected_of(second, kernel(1), rows, activated, own), stages.outputs);
    expect_sums(routing, rows, stages, call, dtype);
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
  BlockShape usual{6, 256, 384, 272}, biased = usual, gpt_oss{5, 2880, 192, 96}, plain = usual, stack = usual;
  biased.bias = true;
  gpt_oss.bias = gpt_oss.interleaved = gpt_oss.stacked = true;
  plain.gated = false;
  stack.stacked = true;  // one part, so that only experts differ in the scales of their activations
  return {{"nvfp4 weight only", &sm80_nvfp4_w4a16_stream, usual},
          {"nvfp4 modelopt", &sm80_nvfp4_w4a16_stream, plain, {Kind::relu2, 1, 0, 0}},
          {"nvfp4 compressed-tensors", &sm80_nvfp4_w4a4_stream, stack},
          {"fp8 static", &sm80_fp8_w8a8_stream, stack},
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
      // Some groups of INT4 are multiplied in bf16 alone.
      if (refuses(*s.kernel, made.first.plan.layer, gpu(), dtype)) continue;
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

// Many rows of each expert: tiles of up to 256 tokens, rows that are no multiple of a tile, loads of every kind.
TEST_F(DeviceExpertsTest, ManyRowsOfEachExpert) {
  if (gpu().arch != "sm_90") GTEST_SKIP() << "the prefill kernels are Hopper's";
  struct Many {
    Stored stored;
    const Kernel* many;
  };
  BlockShape usual{6, 256, 384, 272}, gpt_oss{5, 2880, 192, 96}, stack = usual;
  gpt_oss.bias = gpt_oss.interleaved = gpt_oss.stacked = true;
  stack.stacked = true;
  const Many formats[] = {{{"nvfp4 weight only", &sm80_nvfp4_w4a16_stream, usual}, &sm90_nvfp4_w4a16_prefill},
                          {{"nvfp4 compressed-tensors", &sm80_nvfp4_w4a4_stream, stack}, &sm90_nvfp4_w4a4_prefill},
                          {{"mxfp4 weight only", &sm80_mxfp4_stream, gpt_oss, kClamped}, &sm90_mxfp4_prefill},
                          {{"int4 packed", &sm80_int4_w4a16_stream, usual}, &sm90_int4_w4a16_prefill},
                          {{"awq", &sm80_int4_w4a16_stream, usual}, &sm90_int4_w4a16_prefill}};
  for (const auto& [s, many] : formats) {
    SCOPED_TRACE(s.scheme);
    const DeviceBlock made(scheme_called(s.scheme), *s.kernel, s.shape, s.function, random_(), many);
    for (const int64_t tokens : {60, 150, 333, 700}) {
      ASSERT_EQ(&made.experts().kernel(0, tokens, 2, DType::bf16), many);
      for (const Load load : {Load::uniform, Load::skewed, Load::one_expert, Load::first_half}) {
        expect_block(made, made_routing(tokens, 2, s.shape.experts, load, random_), DType::bf16);
        if (HasFailure()) return;
      }
    }
  }
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
  for (const auto& [tokens, top_k] : {std::pair<int64_t, int64_t>{1, 1}, {1, 2}, {1, 4}, {40, 4}, {700, 4}}) {
    MadeRouting routing = made_routing(tokens, top_k, 8, Load::uniform, random_);
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
      std::string_view both[] = {tactic, tactic};
      const MadeRouting routing = made_routing(tokens, 2, shape.experts, Load::uniform, random_);
      const DeviceExperts experts = made.experts();
      GuardedMatrix x = made_x(tokens, shape.k, DType::bf16);
      const auto runs = [&] { return ExpertCall(experts, routing, x, 0).queue(nullptr, both).ok(); };
      // Blocks of an odd number of slabs cannot pair gate and up.
      if (!runs()) both[0] = "";
      if (!runs()) continue;
      SCOPED_TRACE(tactic);
      expect_block(made, routing, DType::bf16, both);
      if (HasFailure()) return;
      ++ran;
    }
    EXPECT_GE(ran, 2);
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
