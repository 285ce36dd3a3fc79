// AutoRound: other writers' tensors by packing_format (formats.md 9).
#include "layer/table.h"

namespace gearshift::test {
namespace {

std::string auto_round_config(const std::string& more) {
  return R"({"quantization_config":{"quant_method":"auto-round","bits":4,"group_size":128,"sym":true,"data_type":"int")" +
         more + "}}";
}
Table round_gptq(const std::string& m, int64_t bits = 4) {
  return {{m + ".qweight", "I32", {256 * bits / 32, 64}},
          {m + ".qzeros", "I32", {2, 64 * bits / 32}},
          {m + ".scales", "F16", {2, 64}}};
}

TEST(AutoRound, PackingDecidesTheZeroPoint) {
  const auto storage = [](const std::string& packing) {
    const auto model = read_table(round_gptq("a"), auto_round_config(packing));
    EXPECT_TRUE(model.ok()) << model.error().message();
    return model->layers[0].scheme.weight.storage;
  };
  EXPECT_EQ(storage(""), Storage::gptq_v1);
  EXPECT_EQ(storage(R"(,"packing_format":"auto_round:auto_gptq")"), Storage::gptq_v1);
  EXPECT_EQ(storage(R"(,"packing_format":"auto_round:gptqmodel")"), Storage::gptq_v2);
  EXPECT_EQ(storage(R"(,"packing_format":"auto_round")"), Storage::gptq_v2);
}

TEST(AutoRound, AwqTensors) {
  const Table table = {{"a.qweight", "I32", {256, 8}}, {"a.qzeros", "I32", {2, 8}}, {"a.scales", "F16", {2, 64}}};
  const auto model = read_table(table, auto_round_config(R"(,"packing_format":"auto_round:auto_awq")"));
  ASSERT_EQ(said(model, "a"), "mixed_precision 64x256");
  EXPECT_EQ(model->layers[0].scheme.weight.storage, Storage::awq);
}

TEST(AutoRound, ExtraConfigByNameThenExpression) {
  const std::string config = auto_round_config(
      R"(,"extra_config":{"m.0.gate":{"bits":16,"data_type":"fp"},".*down.*":{"bits":8},"m.1.up":{"bits":2}})");
  Table table = bf16("m.0.gate", 64, 32);
  add(&table, round_gptq("m.0.gate_proj"));
  add(&table, round_gptq("m.0.down", 8));
  add(&table, round_gptq("m.1.up", 2));
  add(&table, round_gptq("m.11.up"));
  const auto model = read_table(table, config);
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(said(model, "m.0.gate"), "bf16 64x32");
  EXPECT_EQ(find(model->layers, "m.0.gate_proj")->scheme.weight.format, Format::uint4);
  EXPECT_EQ(find(model->layers, "m.0.down")->scheme.weight.format, Format::uint8);
  EXPECT_EQ(find(model->layers, "m.1.up")->scheme.weight.format, Format::uint2);
  EXPECT_EQ(find(model->layers, "m.11.up")->scheme.weight.format, Format::uint4);
  EXPECT_TRUE(fails(read_table(round_gptq("m.0.gate"), config), ErrorCode::damaged_checkpoint, {"m.0.gate"}));
}

TEST(AutoRound, TensorsOfCompressedTensors) {
  const std::string head =
      R"({"quantization_config":{"quant_method":"intel/auto-round","packing_format":"auto_round:llm_compressor",)";
  const Table mx = {{"a.weight_packed", "U8", {64, 48}}, {"a.weight_scale", "U8", {64, 3}}};
  EXPECT_EQ(said(read_table(mx, head + R"("bits":4,"act_bits":4,"data_type":"mx_fp","group_size":32}})"), "a"),
            "mxfp4 64x96");
  EXPECT_EQ(
      said(read_table(nvfp4_ct("a", 64, 32), head + R"("bits":4,"act_bits":4,"data_type":"nv_fp","group_size":16}})"),
           "a"),
      "nvfp4_w4a4 64x32");
}

TEST(AutoRound, Fp8Static) {
  const std::string config =
      R"({"quantization_config":{"quant_method":"auto-round","packing_format":"auto_round:fp8_static","bits":8,"act_bits":8,"data_type":"fp","group_size":-1}})";
  EXPECT_EQ(said(read_table(fp8_modelopt("a", 64, 32), config), "a"), "fp8_w8a8 64x32");
}

TEST(AutoRound, WhatIsNotLoadedIsNamed) {
  EXPECT_TRUE(fails(read_table(round_gptq("a"), auto_round_config(R"(,"packing_format":"mlx")")),
                    ErrorCode::unsupported_scheme, {"packing_format", "mlx"}));
  EXPECT_TRUE(fails(read_table(round_gptq("a"), auto_round_config(R"(,"act_bits":8)")), ErrorCode::unsupported_scheme,
                    {"8-bit activations"}));
}

}  // namespace
}  // namespace gearshift::test
