// Tensor-parallel shards of a checkpoint on disk: each rank's is cut, prepared and proven.
#include <random>

#include "pipeline/made_model.h"
#include "pipeline/tp_degrees.h"

namespace gearshift {
namespace {

class ShardsTest : public MadeModel {
 protected:
  // FP8 in blocks of 128 x 128, as DeepSeek writes it.
  void write_blocks(int64_t n, int64_t k) const {
    const uint64_t seed = std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<MadeTensor> tensors;
    for (const std::string layer : {"model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.o_proj"}) {
      std::vector<uint8_t> codes(static_cast<size_t>(n * k));
      for (uint8_t& code : codes) code = static_cast<uint8_t>(random() % 0x78);
      std::vector<float> scales(static_cast<size_t>((n + 127) / 128 * ((k + 127) / 128)));
      for (float& scale : scales) scale = std::uniform_real_distribution<float>(0.01f, 0.1f)(random);
      tensors.push_back({layer + ".weight", DType::f8_e4m3, {n, k}, std::move(codes)});
      tensors.push_back(
          {layer + ".weight_scale_inv", DType::f32, {(n + 127) / 128, (k + 127) / 128}, bytes_of_values(scales)});
    }
    write(R"({"architectures": ["LlamaForCausalLM"], "quantization_config": {"quant_method": "fp8",
              "activation_scheme": "dynamic", "weight_block_size": [128, 128]}})",
          tensors);
  }
  Options over(const std::string& tp) const {
    Options all = options("1,9");
    all["tp"] = {{tp}, "call"};
    return all;
  }
};

TEST_F(ShardsTest, Case32VerifiedOnEveryRank) {
  write_blocks(256, 256);
  for (const int64_t tp : {2, 4, 3}) {
    SCOPED_TRACE(tp);
    const auto report = verify(over(std::to_string(tp)));
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_TRUE(report->quarantined.empty());
    for (const LayerPlan& row : report->plan.layers) {
      EXPECT_EQ(row.decision->rescue.has_value(), tp > 2) << row.layer.name;
      for (int64_t rank = 0; rank < tp; ++rank) {
        const std::string label = row.layer.name + " (rank " + std::to_string(rank) + ")";
        const auto shown = std::count_if(report->rows.begin(), report->rows.end(),
                                         [&](const Measurement& m) { return m.layer == label; });
        EXPECT_GE(shown, 2) << label;
      }
    }
    for (const Measurement& row : report->rows) EXPECT_TRUE(row.comparison.ok) << row.layer << row.comparison.failure;
  }
  EXPECT_FALSE(verify(over("auto")).ok());
  EXPECT_FALSE(run(over("2")).ok());
}

TEST_F(ShardsTest, DegreesNameTheNumberInTheWay) {
  write_blocks(256, 512);
  const auto degrees = [&](Options options) {
    options["device"] = {{"h100"}, "call"};
    return tp_degrees(Session::open(directory_, options).value()).value();
  };
  const std::vector<TpDegree> own = degrees(over("auto"));
  ASSERT_GE(own.size(), 4u);
  EXPECT_TRUE(own[0].ok && own[1].ok);
  EXPECT_FALSE(own[2].ok);
  EXPECT_EQ(own[2].degree, 4);
  EXPECT_EQ(own[2].layers, 1) << "o_proj still gets whole blocks";
  EXPECT_EQ(own[2].field, "n");
  EXPECT_EQ(own[2].found, "64");
  // An engine that divides evenly: 48 columns over 32 ranks is no question of rescues.
  write_blocks(48, 48);
  Options vllm = over("auto");
  vllm["registry"] = {{"vllm"}, "call"};
  const std::vector<TpDegree> other = degrees(vllm);
  EXPECT_EQ(other[5].degree, 32);
  EXPECT_EQ(other[5].layers, 2);
  EXPECT_EQ(other[5].found, "48");
  EXPECT_EQ(other[5].wanted, "a multiple of 32");
}

}  // namespace
}  // namespace gearshift
