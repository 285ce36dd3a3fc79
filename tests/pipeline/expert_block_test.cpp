// Whole expert blocks from checkpoints through --input and --output, with a router's choice beside x.
#include <cmath>
#include <random>

#include "gearshift/moe.h"
#include "pipeline/made_model.h"

namespace gearshift {
namespace {

double e2m1_value(int code) {
  constexpr double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -values[code & 7] : values[code & 7];
}

double distance(const std::vector<float>& found, const std::vector<double>& wanted) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    error += (found[i] - wanted[i]) * (found[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  return std::sqrt(error / norm);
}

class ExpertBlocks : public MadeModel {
 protected:
  ExpertBlocks() : seed_(std::random_device{}()), random_(seed_), trace_(__FILE__, __LINE__, std::to_string(seed_)) {}

  std::vector<float> floats(int64_t count, float deviation) {
    std::normal_distribution<float> draw(0, deviation);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = draw(random_);
    return values;
  }
  std::vector<uint8_t> bf16(int64_t count, float deviation) {
    std::vector<uint8_t> bytes(static_cast<size_t>(2 * count));
    const std::vector<float> values = floats(count, deviation);
    for (int64_t i = 0; i < count; ++i) store_element(bytes.data(), DType::bf16, i, values[static_cast<size_t>(i)]);
    return bytes;
  }
  // x and a router's choice as tensors called `x_name` and `prefix` + topk_...
  struct Given {
    int64_t tokens, top_k;
    std::vector<float> x, weights;
    std::vector<int64_t> ids;
    std::vector<int32_t> experts() const { return {ids.begin(), ids.end()}; }
    std::vector<MadeTensor> tensors(const std::string& x_name, const std::string& prefix) const {
      return {{x_name, DType::f32, {tokens, static_cast<int64_t>(x.size()) / tokens}, bytes_of_values(x)},
              {prefix + "topk_ids", DType::i64, {tokens, top_k}, bytes_of_values(ids)},
              {prefix + "topk_weights", DType::f32, {tokens, top_k}, bytes_of_values(weights)}};
    }
  };
  Given given(int64_t tokens, int64_t top_k, int64_t k, int64_t experts) {
    Given made{tokens, top_k, floats(tokens * k, 0.5f), floats(tokens * top_k, 0.5f), {}};
    for (int64_t i = 0; i < tokens * top_k; ++i)
      made.ids.push_back(static_cast<int64_t>(random_() % static_cast<uint64_t>(experts)));
    return made;
  }
  // A mixture with a module for each projection of each expert.
  void write_mixture(int64_t experts, int64_t hidden, int64_t inner, bool gated, const std::string& more) {
    std::vector<MadeTensor> tensors;
    for (int64_t e = 0; e < experts; ++e) {
      const std::string name = kPrefix + std::to_string(e) + ".";
      if (gated)
        tensors.push_back({name + "gate_proj.weight", DType::bf16, {inner, hidden}, bf16(inner * hidden, 0.1f)});
      tensors.push_back({name + "up_proj.weight", DType::bf16, {inner, hidden}, bf16(inner * hidden, 0.1f)});
      tensors.push_back({name + "down_proj.weight", DType::bf16, {hidden, inner}, bf16(inner * hidden, 0.1f)});
    }
    write(
        R"({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_experts_per_tok": 2, "num_experts": )" +
            std::to_string(experts) + more + "}",
        tensors);
  }
  // The block in float64, from the checkpoint's own bytes.
  std::vector<double> wanted(const Given& made) {
    auto session = Session::open(directory_, options("1"));
    EXPECT_TRUE(session.ok());
    const auto plan = session->plan();
    const auto pairs = expert_pairs(session->rows());
    EXPECT_EQ(pairs.size(), 1u);
    const auto first = prepare(session->checkpoint(), plan->layers[pairs[0].first], 2);
    const auto second = prepare(session->checkpoint(), plan->layers[pairs[0].second], 2);
    const auto block = ExpertBlock::make(*first, *second, read_routing(session->checkpoint())->function);
    EXPECT_TRUE(block.ok()) << block.error().message();
    std::vector<int64_t> rows(static_cast<size_t>(made.tokens));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
    std::vector<double> y(static_cast<size_t>(made.tokens * block->n()));
    const std::vector<int32_t> ids = made.experts();
    reference_experts(*block, {made.tokens, made.top_k, ids.data(), made.weights.data()},
                      {made.x.data(), DType::f32, made.tokens, block->k(), block->k()}, rows, DType::f32, y.data(), 2);
    return y;
  }
  std::string refused(const std::vector<MadeTensor>& inputs) {
    const auto ran = run_with(inputs);
    return ran.ok() ? "ran" : ran.error().message();
  }

  const std::string kBlock = "model.layers.0.mlp.experts", kPrefix = kBlock + ".";
  uint64_t seed_;
  std::mt19937_64 random_;
  ::testing::ScopedTrace trace_;
};

// What `quantize` writes in every scheme that mixtures are stored in.
TEST_F(ExpertBlocks, EveryScheme) {
  constexpr int64_t experts = 6, hidden = 128, inner = 128;
  const std::string float_model = directory_ + "/float";
  const std::string own = directory_;
  std::filesystem::create_directories(float_model);
  directory_ = float_model;
  write_mixture(experts, hidden, inner, true, R"(, "hidden_act": "silu")");
  for (const char* scheme : {"UNQUANTIZED", "NVFP4", "NVFP4A16", "MXFP4", "MXFP8", "FP8", "FP8_DYNAMIC", "FP8_BLOCK",
                             "W4A16", "W4A16_ASYM", "INT8"}) {
    SCOPED_TRACE(scheme);
    directory_ = own + "/" + scheme;
    const auto quantized =
        quantize_model(float_model, {{"scheme", {{scheme}, "call"}}, {"out", {{directory_}, "call"}}});
    ASSERT_TRUE(quantized.ok()) << quantized.error().message();
    for (const int64_t tokens : {1, 21}) {
      const Given made = given(tokens, 2, hidden, experts);
      const auto outputs = run_with(made.tensors(kBlock, kPrefix));
      ASSERT_TRUE(outputs.ok()) << outputs.error().message();
      ASSERT_EQ(outputs->y.size(), 1u);
      const std::vector<float>& y = outputs->y.at(kBlock);
      ASSERT_EQ(y.size(), static_cast<size_t>(tokens * hidden));
      // Between the projections a last bit of fp32 may move an activation to the next code.
      EXPECT_LT(distance(y, wanted(made)), 2e-3);
      ASSERT_EQ(outputs->report.rows.size(), 1u);
      EXPECT_EQ(outputs->report.rows[0].layer, kBlock);
      EXPECT_EQ(outputs->report.rows[0].m, tokens);
      EXPECT_TRUE(outputs->report.rows[0].comparison.ok);
      EXPECT_TRUE(outputs->report.not_run.empty() && outputs->report.quarantined.empty());
    }
  }
  directory_ = own;
}

// Stacks of MXFP4 blocks with biases, gate and up interleaved, clamped: weights and the block decoded here.
TEST_F(ExpertBlocks, GptOss) {
  constexpr int64_t experts = 4, hidden = 64, inner = 96, tokens = 9, top_k = 3;
  std::vector<MadeTensor> tensors;
  struct Stack {
    int64_t n, k;
    std::vector<double> w, bias;
  };
  const auto stack = [&](const std::string& stem, int64_t n, int64_t k) {
    Stack known{n, k, {}, {}};
    std::vector<uint8_t> scales(static_cast<size_t>(experts * n * k / 32)),
        codes(static_cast<size_t>(experts * n * k / 2));
    for (uint8_t& scale : scales) scale = static_cast<uint8_t>(122 + random_() % 4);
    for (uint8_t& code : codes) code = static_cast<uint8_t>(random_());
    for (size_t i = 0; i < 2 * codes.size(); ++i)
      known.w.push_back(e2m1_value(codes[i / 2] >> (i % 2 * 4) & 15) * std::ldexp(1.0, scales[i / 32] - 127));
    const std::vector<uint8_t> bias = bf16(experts * n, 1);
    for (int64_t i = 0; i < experts * n; ++i) known.bias.push_back(load_element(bias.data(), DType::bf16, i));
    tensors.push_back({kPrefix + stem + "_blocks", DType::u8, {experts, n, k / 32, 16}, codes});
    tensors.push_back({kPrefix + stem + "_scales", DType::u8, {experts, n, k / 32}, scales});
    tensors.push_back({kPrefix + stem + "_bias", DType::bf16, {experts, n}, bias});
    return known;
  };
  const Stack gate_up = stack("gate_up_proj", 2 * inner, hidden), down = stack("down_proj", hidden, inner);
  write(R"({"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_act": "silu", "swiglu_limit": 7.0,
           "num_local_experts": 4, "num_experts_per_tok": 3, "quantization_config": {"quant_method": "mxfp4"}})",
        tensors);
  const Given made = given(tokens, top_k, hidden, experts);
  const auto times = [](const Stack& s, int64_t expert, const std::vector<double>& x) {
    std::vector<double> y;
    for (int64_t n = 0; n < s.n; ++n) {
      double sum = s.bias[static_cast<size_t>(expert * s.n + n)];
      for (int64_t k = 0; k < s.k; ++k)
        sum += s.w[static_cast<size_t>((expert * s.n + n) * s.k + k)] * x[static_cast<size_t>(k)];
      y.push_back(sum);
    }
    return y;
  };
  std::vector<double> expected(static_cast<size_t>(tokens * hidden));
  for (int64_t t = 0; t < tokens; ++t) {
    const std::vector<double> x(made.x.begin() + t * hidden, made.x.begin() + (t + 1) * hidden);
    for (int64_t s = 0; s < top_k; ++s) {
      const auto entry = static_cast<size_t>(t * top_k + s);
      const std::vector<double> both = times(gate_up, made.ids[entry], x);
      std::vector<double> h;
      for (size_t i = 0; i < inner; ++i) {
        const double gate = std::min(both[2 * i], 7.0), up = std::clamp(both[2 * i + 1], -7.0, 7.0);
        h.push_back(gate / (1 + std::exp(-1.702 * gate)) * (up + 1));
      }
      const std::vector<double> y = times(down, made.ids[entry], h);
      for (size_t n = 0; n < hidden; ++n)
        expected[static_cast<size_t>(t * hidden) + n] += static_cast<double>(made.weights[entry]) * y[n];
    }
  }
  const auto named = run_with(made.tensors(kBlock, kPrefix));
  ASSERT_TRUE(named.ok()) << named.error().message();
  EXPECT_LT(distance(named->y.at(kBlock), expected), 2e-6);
  // The same for all blocks: x, topk_ids, topk_weights.
  const auto for_all = run_with(made.tensors("x", ""));
  ASSERT_TRUE(for_all.ok()) << for_all.error().message();
  EXPECT_EQ(for_all->y.at(kBlock), named->y.at(kBlock)) << "the same bits in another run";
}

TEST_F(ExpertBlocks, UpAloneWithSquaredRelu) {
  constexpr int64_t experts = 5, hidden = 48, inner = 80;
  write_mixture(experts, hidden, inner, false, R"(, "mlp_hidden_act": "relu2")");
  const Given made = given(7, 2, hidden, experts);
  const auto outputs = run_with(made.tensors(kBlock, kPrefix));
  ASSERT_TRUE(outputs.ok()) << outputs.error().message();
  EXPECT_LT(distance(outputs->y.at(kBlock), wanted(made)), 2e-6);
}

TEST_F(ExpertBlocks, MadeUpTokensRunAsOneAndCountOnce) {
  write_mixture(4, 64, 32, true, "");
  const auto ran = run(options("1,5"));
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  std::map<std::string, int> rows;
  double block_us = 0;
  for (const Measurement& row : ran->rows) {
    EXPECT_TRUE(row.comparison.ok) << row.layer << row.comparison.failure;
    ++rows[row.layer];
    if (row.layer == kBlock && row.m == 5) block_us = row.timing->median_us;
  }
  EXPECT_EQ(rows, (std::map<std::string, int>{{kBlock, 2}, {kPrefix + "down_proj", 2}, {kPrefix + "gate_up_proj", 2}}));
  ASSERT_EQ(ran->stack.size(), 2u);
  EXPECT_EQ(ran->stack[1].total_us, block_us);
}

TEST_F(ExpertBlocks, RefusesRoutersThatDoNotFit) {
  write_mixture(4, 64, 32, true, "");
  const Given good = given(3, 2, 64, 4);
  const auto changed = [&](const auto& change) {
    std::vector<MadeTensor> tensors = good.tensors(kBlock, kPrefix);
    change(tensors);
    return refused(tensors);
  };
  EXPECT_NE(changed([](auto& t) { t.resize(1); }).find("topk_ids and"), std::string::npos);
  EXPECT_NE(changed([](auto& t) { t.pop_back(); }).find("topk_weights: found missing"), std::string::npos)
      << changed([](auto& t) { t.pop_back(); });
  EXPECT_NE(changed([](auto& t) { t[1].dtype = DType::f64; }).find("integers"), std::string::npos);
  EXPECT_NE(changed([](auto& t) { t[2].dtype = DType::i32; }).find("F32, F16, BF16 or F64"), std::string::npos);
  EXPECT_NE(changed([](auto& t) { t[1].shape = {2, 3}; }).find("[3, top_k]"), std::string::npos);
  EXPECT_NE(changed([](auto& t) { t[2].shape = {2, 3}; }).find("topk_weights"), std::string::npos);
  EXPECT_NE(changed([](auto& t) { t[1].bytes[16] = 4; }).find("expert 4 at token 1, slot 0"), std::string::npos);
  EXPECT_NE(changed([](auto& t) { std::fill(t[1].bytes.begin(), t[1].bytes.begin() + 8, 0xFF); }).find("expert -1"),
            std::string::npos);
  EXPECT_NE(changed([](auto& t) {
              const float nan = std::nanf("");
              std::memcpy(t[2].bytes.data(), &nan, 4);
            }).find("finite"),
            std::string::npos);
  // x alone says nothing about who gets it.
  const auto ran = run_with({good.tensors("x", "")[0]});
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  ASSERT_EQ(ran->report.not_run.size(), 2u);
  EXPECT_NE(ran->report.not_run[0].find("topk_ids"), std::string::npos);
}

// The reference, but with one wrong element as soon as an expert gets more rows than the sizes at which rows are proven
// one by one leave unseen: a load that only a block meets.
int64_t lies_at = 0;
void lie(const RunArgs& args) {
  reference_kernel.run(args);
  if (args.x.rows == lies_at)
    store_element(args.y.data, args.y.dtype, 1, load_element(args.y.data, args.y.dtype, 1) + 1);
}
TEST_F(ExpertBlocks, AKernelThatIsWrongUnderOneLoadIsQuarantined) {
  constexpr int64_t tokens = 6;
  write_mixture(4, 64, 32, true, "");
  Kernel liar = reference_kernel;
  liar.name = "liar";
  liar.backend = "native";
  liar.run = lie;
  lies_at = 2 * tokens;
  Registry registry{"test",
                    {{Platform::cpu, Family::bf16, {{&liar, 1, 0, "a test"}, {&reference_kernel, 1, 0, "a test"}}}}};
  Given made = given(tokens, 2, 64, 4);
  std::fill(made.ids.begin(), made.ids.end(), 3);  // twelve rows for one expert
  const auto outputs = run_with(made.tensors(kBlock, kPrefix), registry);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message();
  ASSERT_FALSE(outputs->report.quarantined.empty());
  EXPECT_EQ(outputs->report.quarantined[0].kernel, "liar");
  EXPECT_NE(outputs->report.quarantined[0].reason.find("of 12 rows"), std::string::npos)
      << outputs->report.quarantined[0].reason;
  EXPECT_LT(distance(outputs->y.at(kBlock), wanted(made)), 1e-6);
}

}  // namespace
}  // namespace gearshift
