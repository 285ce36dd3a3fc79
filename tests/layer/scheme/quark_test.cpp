// AMD Quark (formats.md 8).
#include "layer/table.h"

namespace gearshift::test {
namespace {

std::string quark_config(const std::string& weight, const std::string& input, const std::string& more = "") {
  return R"({"quantization_config":{"quant_method":"quark","exclude":["lm_head","re:.*mlp.gate$"],"global_quant_config":{"weight":)" +
         weight + R"(,"input_tensors":)" + input + "}" + more + "}}";
}
const std::string kFp8Tensor = R"({"dtype":"fp8_e4m3","qscheme":"per_tensor","is_dynamic":false})";
const std::string kFp8Channel = R"({"dtype":"fp8_e4m3","qscheme":"per_channel","ch_axis":0})";
const std::string kFp8Token = R"({"dtype":"fp8_e4m3","qscheme":"per_channel","is_dynamic":true})";
std::string quark_mx(const std::string& dtype, bool dynamic) {
  return R"({"dtype":")" + dtype +
         R"(","qscheme":"per_group","group_size":32,"scale_format":"e8m0","symmetric":null,)" +
         R"("scale_calculation_mode":"even","is_dynamic":)" + (dynamic ? "true}" : "false}");
}

TEST(Quark, Fp8StaticWithRulesByName) {
  Table table = fp8_modelopt("m.q_proj", 64, 32);
  add(&table, fp8_modelopt("m.k_proj", 64, 32));
  table.push_back({"m.k_proj.output_scale", "F32", {}});
  add(&table, bf16("lm_head", 64, 32));
  add(&table, bf16("m.mlp.gate", 4, 32));
  const auto model = read_table(
      table, quark_config(kFp8Tensor, kFp8Tensor,
                          R"(,"layer_quant_config":{"*k_proj":{"weight":)" + kFp8Tensor + R"(,"input_tensors":)" +
                              kFp8Tensor + R"(,"output_tensors":)" + kFp8Tensor + "}}"));
  EXPECT_EQ(said(model, "m.q_proj"), "fp8_w8a8 64x32");
  EXPECT_EQ(said(model, "m.k_proj"), "fp8_w8a8 64x32");
  EXPECT_EQ(said(model, "lm_head"), "bf16 64x32");
  EXPECT_EQ(said(model, "m.mlp.gate"), "bf16 4x32");
}

TEST(Quark, Fp8PerChannelAndToken) {
  const Table rows = {{"a.weight", "F8_E4M3", {64, 32}}, {"a.weight_scale", "F32", {64}}};
  const auto model = read_table(rows, quark_config(kFp8Channel, kFp8Token));
  ASSERT_EQ(said(model, "a"), "fp8_w8a8 64x32");
  EXPECT_EQ(model->layers[0].scheme.activation->granularity, Granularity::token);
  const Table single = {{"a.weight", "F8_E4M3", {64, 32}}, {"a.weight_scale", "F32", {}}};
  EXPECT_TRUE(fails(read_table(single, quark_config(kFp8Channel, kFp8Token)), ErrorCode::damaged_checkpoint,
                    {"a.weight_scale", "per_channel"}));
  EXPECT_EQ(said(read_table(rows, quark_config(kFp8Channel, "null")), "a"), "w8a16_fp8 64x32");
}

TEST(Quark, Mx) {
  const Table four = {{"a.weight", "U8", {64, 48}}, {"a.weight_scale", "U8", {64, 3}}};
  const auto model = read_table(four, quark_config("[" + quark_mx("fp4", false) + "]", quark_mx("fp4", true)));
  ASSERT_EQ(said(model, "a"), "mxfp4 64x96");
  EXPECT_EQ(model->layers[0].scheme.activation->rule, ScaleRule::e8m0_even);
  EXPECT_TRUE(model->layers[0].scheme.weight.symmetric);
  const Table six = {{"a.weight", "U8", {64, 72}}, {"a.weight_scale", "U8", {64, 3}}};
  for (const std::string dtype : {"fp6_e2m3", "fp6_e3m2"}) {
    const auto read = read_table(six, quark_config(quark_mx(dtype, false), quark_mx(dtype, true)));
    ASSERT_EQ(said(read, "a"), "mxfp6 64x96");
    EXPECT_EQ(read->layers[0].scheme.weight.storage, Storage::fp6_bytes);
  }
}

TEST(Quark, ActivationsBesideE5m2WeightsAreE4m3) {
  const Table table = {{"a.weight", "F8_E5M2", {64, 32}}, {"a.weight_scale", "F32", {64}}};
  const std::string wide = R"({"dtype":"fp8_e5m2","qscheme":"per_channel"})";
  const auto model = read_table(table, quark_config(wide, kFp8Token));
  ASSERT_EQ(said(model, "a"), "fp8_w8a8 64x32");
  EXPECT_EQ(model->layers[0].scheme.weight.format, Format::e5m2);
  EXPECT_EQ(model->layers[0].scheme.activation->format, Format::e4m3);
  // e5m2 activations: no recipe.
  EXPECT_TRUE(
      fails(read_table(table, quark_config(wide, R"({"dtype":"fp8_e5m2","qscheme":"per_channel","is_dynamic":true})")),
            ErrorCode::unsupported_scheme, {"fp8_e5m2"}));
}

TEST(Quark, Int8) {
  const Table table = {{"a.weight", "I8", {64, 32}},
                       {"a.weight_scale", "F32", {64}},
                       {"a.weight_zero_point", "I8", {64}},
                       {"a.input_scale", "F32", {}},
                       {"a.input_zero_point", "I8", {}}};
  const auto model = read_table(table, quark_config(R"({"dtype":"int8","qscheme":"per_channel","symmetric":true})",
                                                    R"({"dtype":"int8","qscheme":"per_tensor","is_dynamic":false})"));
  ASSERT_EQ(said(model, "a"), "int8_w8a8 64x32");
  EXPECT_FALSE(model->layers[0].scheme.activation->dynamic);
  const auto skewed = read_table(table, quark_config(R"({"dtype":"int8","qscheme":"per_channel","symmetric":false})",
                                                     R"({"dtype":"int8","qscheme":"per_tensor","symmetric":false})"));
  EXPECT_FALSE(skewed->layers[0].scheme.weight.symmetric || skewed->layers[0].scheme.activation->symmetric);
}

TEST(Quark, Int4InEitherOrder) {
  const Table table = {
      {"a.weight", "I32", {256, 8}}, {"a.weight_scale", "F32", {2, 64}}, {"a.weight_zero_point", "I32", {2, 8}}};
  const std::string spec = R"({"dtype":"uint4","qscheme":"per_group","group_size":128,"symmetric":false})";
  const auto reordered = read_table(table, quark_config(spec, "null", R"(,"export":{"pack_method":"reorder"})"));
  ASSERT_EQ(said(reordered, "a"), "mixed_precision 64x256");
  EXPECT_EQ(reordered->layers[0].scheme.weight.storage, Storage::quark_reorder);
  EXPECT_FALSE(reordered->layers[0].scheme.weight.symmetric);
  const auto in_order = read_table(table, quark_config(R"({"dtype":"int4","qscheme":"per_group","group_size":128})",
                                                       "null", R"(,"export":{"pack_method":"order"})"));
  EXPECT_EQ(in_order->layers[0].scheme.weight.storage, Storage::quark_order);
  EXPECT_EQ(in_order->layers[0].scheme.weight.format, Format::int4);
}

TEST(Quark, Nvfp4InTwoLevels) {
  const std::string weight =
      R"([{"dtype":"fp4","qscheme":"per_group","group_size":16},{"dtype":"fp8_e4m3","qscheme":"per_tensor","is_scale_quant":true}])";
  const Table table = {{"a.weight", "U8", {64, 16}},
                       {"a.weight_scale", "F8_E4M3", {64, 2}},
                       {"a.weight_scale_2", "F32", {}},
                       {"a.input_scale_2", "F32", {}}};
  const auto model = read_table(table, quark_config(weight, weight));
  ASSERT_EQ(said(model, "a"), "nvfp4_w4a4 64x32");
  EXPECT_FALSE(model->layers[0].scheme.weight.global_divides);
}

TEST(Quark, WhatIsNotLoadedIsNamed) {
  const Table table = fp8_modelopt("a", 64, 32);
  EXPECT_TRUE(fails(read_table(table, quark_config(R"({"dtype":"mx9"})", "null")), ErrorCode::unsupported_scheme,
                    {"global_quant_config.weight.dtype", "mx9"}));
  EXPECT_TRUE(
      fails(read_table(table, quark_config("[" + kFp8Tensor + R"(,{"dtype":"int4","qscheme":"per_channel"}])", "null")),
            ErrorCode::unsupported_scheme, {"fp8_e4m3 over int4"}));
  EXPECT_TRUE(fails(read_table(bf16("m.q_proj", 64, 32), quark_config(kFp8Tensor, kFp8Tensor)),
                    ErrorCode::damaged_checkpoint, {"m.q_proj", "fp8_e4m3"}));
}

}  // namespace
}  // namespace gearshift::test
