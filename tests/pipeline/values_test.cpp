// What a plan cannot know, because only values show it.
#include <random>

#include "pipeline/made_model.h"

namespace gearshift {
namespace {

using ValuesTest = MadeModel;

std::string gptq_config(const std::string& more) {
  return R"({"architectures": ["LlamaForCausalLM"], "quantization_config": {"quant_method": "gptq", "bits": 4, )" +
         more + "}}";
}

const Warning* contradiction(const Plan& plan) {
  for (const Warning& warning : plan.warnings) {
    if (warning.code == "contradiction") return &warning;
  }
  return nullptr;
}

// Codes 8, scale 0.5, x = 1: zero whatever the stored zero points say, and a word about those that say something else.
TEST_F(ValuesTest, Case44GptqZeroPointsTwoConventions) {
  constexpr int64_t n = 64, k = 256, groups = 2;
  struct Try {
    std::string tag;
    uint8_t stored;
    std::string told;  // "" where nothing contradicts
  };
  const std::string v1 = R"("checkpoint_format": "gptq", )", v2 = R"("checkpoint_format": "gptq_v2", )";
  for (const Try& attempt : std::vector<Try>{{v1, 0x77, ""},
                                             {v2, 0x88, ""},
                                             {v1, 0x88, "qzeros holds 8, which GPTQ v1"},
                                             {v2, 0x77, "qzeros holds 7, which GPTQ v2"},
                                             {"", 0x77, ""},
                                             {"", 0x88, "GPTQ v1 (checkpoint_format \"gptq\", or none)"}}) {
    SCOPED_TRACE(attempt.tag + std::to_string(attempt.stored));
    std::vector<MadeTensor> tensors;
    const std::vector<uint8_t> codes(static_cast<size_t>(k * n / 2), 0x88),
        zeros(static_cast<size_t>(groups * n / 2), attempt.stored);
    const auto scales = bytes_of_values(std::vector<uint16_t>(static_cast<size_t>(groups * n), 0x3800));
    for (const std::string layer : {"model.layers.0.mlp.down_proj", "model.layers.1.mlp.down_proj"}) {
      tensors.push_back({layer + ".qweight", DType::i32, {k / 8, n}, codes});
      tensors.push_back({layer + ".qzeros", DType::i32, {groups, n / 8}, zeros});
      tensors.push_back({layer + ".scales", DType::f16, {groups, n}, scales});
    }
    write(gptq_config(attempt.tag + R"("group_size": 128, "sym": true)"), tensors);
    const auto x = bytes_of_values(std::vector<float>(k, 1.0f));
    const auto outputs = run_with({{"x", DType::f32, {1, k}, x}});
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    ASSERT_EQ(outputs->y.size(), 2u);
    for (const auto& [layer, y] : outputs->y) {
      ASSERT_EQ(y.size(), static_cast<size_t>(n));
      for (float value : y) EXPECT_EQ(value, 0.0f) << layer;
    }
    const auto verified = verify(options("1"));
    ASSERT_TRUE(verified.ok()) << verified.error().message();
    for (const Plan* plan : {&outputs->report.plan, &verified->plan}) {
      const Warning* warning = contradiction(*plan);
      ASSERT_EQ(warning != nullptr, !attempt.told.empty());
      if (warning == nullptr) continue;
      EXPECT_EQ(warning->family, "mixed_precision");
      EXPECT_EQ(warning->layers, 2);
      EXPECT_NE(warning->message.find(attempt.told), std::string::npos) << warning->message;
      EXPECT_NE(warning->message.find("settles it: 8"), std::string::npos) << warning->message;
      EXPECT_NE(warning->message.find("2 layers, such as model.layers.0.mlp.down_proj"), std::string::npos);
    }
    // A plan looks at no values.
    EXPECT_EQ(contradiction(plan_model(directory_, options("1")).value()), nullptr);
  }
}

// A kernel that knows no activation order serves layers whose index is in order, and no others.
TEST_F(ValuesTest, Case38GroupIndexInOrderGetsTheFasterKernel) {
  constexpr int64_t n = 32, k = 512, groups = 4;
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::vector<uint8_t> codes(static_cast<size_t>(k * n / 2));
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random());
  std::vector<uint16_t> scales;
  for (int64_t i = 0; i < groups * n; ++i) scales.push_back(static_cast<uint16_t>(0x3000 + random() % 0x400));
  std::vector<float> x;
  for (int64_t i = 0; i < 17 * k; ++i) x.push_back(static_cast<float>(static_cast<int64_t>(random() % 17) - 8));

  static Kernel without_order = reference_kernel;
  without_order.name = "without_order";
  without_order.backend = "native";
  without_order.contract.act_order = false;
  KernelList list;
  list.family = Family::mixed_precision;
  for (const Kernel* kernel : {static_cast<const Kernel*>(&without_order), &reference_kernel})
    list.entries.push_back({kernel, 1, 0, "a test"});
  const Registry registry{"test", {list}};

  std::map<std::string, std::vector<float>> answers;
  for (const std::string order : {"permuted", "monotonic", "unfilled", "absent"}) {
    SCOPED_TRACE(order);
    std::vector<int32_t> index;
    for (int32_t i = 0; i < k; ++i) index.push_back(order == "unfilled" ? 0 : i / 128);
    if (order == "permuted") std::shuffle(index.begin(), index.end(), random);
    const std::string layer = "model.layers.0.mlp.down_proj";
    const std::vector<uint8_t> zeros(static_cast<size_t>(groups * n / 2), 0x77);
    std::vector<MadeTensor> tensors = {{layer + ".qweight", DType::i32, {k / 8, n}, codes},
                                       {layer + ".qzeros", DType::i32, {groups, n / 8}, zeros},
                                       {layer + ".scales", DType::f16, {groups, n}, bytes_of_values(scales)}};
    if (order != "absent") tensors.push_back({layer + ".g_idx", DType::i32, {k}, bytes_of_values(index)});
    write(gptq_config(R"("group_size": 128, "sym": true, "desc_act": true)"), tensors);

    const auto outputs = run_with({{"x", DType::f32, {17, k}, bytes_of_values(x)}}, registry);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    answers[order] = outputs->y.at(layer);
    const std::string wanted = order == "permuted" ? "reference" : "without_order";
    ASSERT_EQ(outputs->report.rows.size(), 1u);
    EXPECT_EQ(outputs->report.rows[0].kernel, wanted);
    EXPECT_TRUE(outputs->report.rows[0].comparison.ok);
    const auto verified = verify(options("1,17"), registry);
    ASSERT_TRUE(verified.ok()) << verified.error().message();
    const Decision& decision = *verified->plan.layers[0].decision;
    EXPECT_EQ(decision.ranges[0].kernel->name, wanted);
    EXPECT_EQ(decision.candidates[0].kind == VerdictKind::rejected, order == "permuted");
    EXPECT_EQ(decision.candidates[0].field == "act_order", order == "permuted");
    EXPECT_EQ(verified->plan.layers[0].layer.scheme.weight.act_order, order == "permuted");
  }
  EXPECT_EQ(answers["monotonic"], answers["absent"]);
  EXPECT_EQ(answers["unfilled"], answers["absent"]);
  EXPECT_NE(answers["permuted"], answers["absent"]);
}

}  // namespace
}  // namespace gearshift
