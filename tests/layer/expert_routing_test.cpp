#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "gearshift/routing.h"

namespace gearshift {
namespace {

ExpertRouting routing_of(const std::string& text) {
  const auto folder = std::filesystem::temp_directory_path() / ("gearshift_routing_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::filesystem::path path = folder / "config.json";
  std::ofstream(path) << R"({"architectures": ["A"], "num_experts": 128, )" << text << "}";
  const auto checkpoint = Checkpoint::open(path.string());
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message();
  const auto routing = read_routing(*checkpoint);
  EXPECT_TRUE(routing.ok());
  std::filesystem::remove_all(folder);
  return *routing;
}

TEST(ExpertRouting, ReadsHowManyExpertsATokenGoesTo) {
  EXPECT_EQ(routing_of(R"("num_experts_per_tok": 8)").top_k, 8);
  EXPECT_EQ(routing_of(R"("num_experts_per_token": 16)").top_k, 16);
  EXPECT_EQ(routing_of(R"("text_config": {"num_experts_per_tok": 4})").top_k, 4);
  EXPECT_EQ(routing_of(R"("num_experts_per_tok": 500)").top_k, 128) << "never more than there are";
  EXPECT_EQ(routing_of(R"("num_experts_per_tok": -3)").top_k, 0);
  EXPECT_EQ(routing_of(R"("num_experts_per_tok": "8")").top_k, 0);
  EXPECT_EQ(routing_of(R"("num_experts_per_tok": null)").top_k, 0);
  EXPECT_EQ(routing_of(R"("hidden_act": "silu")").routed, 128);
}

TEST(ExpertRouting, ReadsWhatStandsBetweenTheProjections) {
  using Kind = ExpertFunction::Kind;
  const auto function = [](const std::string& text) { return routing_of(text).function; };
  EXPECT_EQ(function(R"("hidden_act": "silu")"), (ExpertFunction{Kind::silu, 1, 0, 0}));
  EXPECT_EQ(function(R"("mlp_hidden_act": "relu2", "hidden_act": "silu")").kind, Kind::relu2);
  EXPECT_EQ(function(R"("hidden_activation": "gelu_pytorch_tanh")").kind, Kind::gelu_tanh);
  EXPECT_EQ(function(R"("hidden_act": "gelu")").kind, Kind::gelu);
  EXPECT_EQ(function(R"("hidden_act": "situ")").kind, Kind::unknown);
  EXPECT_EQ(function(R"("dtype": "bfloat16")"), (ExpertFunction{Kind::silu, 1, 0, 0}));
  const ExpertFunction gpt_oss{Kind::silu, 1.702f, 7, 1};
  EXPECT_EQ(function(R"("model_type": "gpt_oss", "hidden_act": "silu", "swiglu_limit": 7.0)"), gpt_oss);
  EXPECT_EQ(function(R"("hidden_act": "swigluoai", "swiglu_alpha": 1.702, "swiglu_limit": 7)"), gpt_oss);
  EXPECT_EQ(function(R"("hidden_act": "silu", "swiglu_limit": 10.0)"), (ExpertFunction{Kind::silu, 1, 10, 0}));
}

TEST(ExpertRouting, RowsOfBatchesAndBack) {
  ExpertRouting routing;
  EXPECT_EQ(expected_rows(routing, 37), 37) << "nobody says how tokens are routed";
  EXPECT_EQ(batch_of_rows(routing, 37), 37);
  routing = {128, 8, {}};
  EXPECT_EQ(expected_rows(routing, 0), 0);
  EXPECT_EQ(expected_rows(routing, 1), 1);
  EXPECT_EQ(expected_rows(routing, 16), 1);
  EXPECT_EQ(expected_rows(routing, 17), 2);
  EXPECT_EQ(expected_rows(routing, 1024), 64);
  EXPECT_EQ(batch_of_rows(routing, 8), 128);
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1000; ++i) {
    routing.routed = 1 + static_cast<int64_t>(random() % 600);
    routing.top_k = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(routing.routed));
    const int64_t rows = 1 + static_cast<int64_t>(random() % 5000);
    const int64_t batch = batch_of_rows(routing, rows);
    EXPECT_EQ(batch, rows * routing.routed / routing.top_k);
    EXPECT_LT(batch, batch_of_rows(routing, rows + 1));
    EXPECT_LE(expected_rows(routing, batch), rows);
    EXPECT_EQ(rows_within(routing, batch), rows);
    EXPECT_EQ(rows_within(routing, batch_of_rows(routing, rows + 1) - 1), rows);
  }
}

}  // namespace
}  // namespace gearshift
