// quant_method "mxfp8" (formats.md 4.8).
#include "layer/table.h"

namespace gearshift::test {
namespace {

std::string mxfp8_config(const std::string& more = "") {
  return R"({"quantization_config":{"quant_method":"mxfp8","weight_block_size":[1,32],"scale_fmt":"ue8m0","activation_scheme":"dynamic","ignored_layers":["lm_head","model.layers.3.moe.gate"])" +
         more + "}}";
}
Table mxfp8_native(const std::string& m, int64_t n, int64_t k, const std::string& suffix = "weight_scale_inv",
                   const std::string& dtype = "U8") {
  return {{m + ".weight", "F8_E4M3", {n, k}}, {m + "." + suffix, dtype, {n, k / 32}}};
}

TEST(Mxfp8, ExponentsUnderTheNameOfABlockScale) {
  for (const std::string suffix : {"weight_scale_inv", "weight_scale"}) {
    for (const std::string dtype : {"U8", "F8_E8M0"}) {
      const auto model = read_table(mxfp8_native("a", 64, 96, suffix, dtype), mxfp8_config());
      ASSERT_EQ(said(model, "a"), "mxfp8 64x96");
      EXPECT_EQ(model->layers[0].scheme.weight.scale, DType::f8_e8m0);
      EXPECT_EQ(model->layers[0].scheme.activation->group, 32);
    }
  }
}

TEST(Mxfp8, IgnoredNamesLackThePrefix) {
  Table table = bf16("language_model.lm_head", 64, 32);
  add(&table, bf16("language_model.model.layers.3.moe.gate", 64, 32));
  const auto model = read_table(table, mxfp8_config());
  EXPECT_EQ(said(model, "language_model.lm_head"), "bf16 64x32");
}

TEST(Mxfp8, FloatScalesAndOtherBlocksAreNoMxfp8) {
  EXPECT_TRUE(fails(read_table(mxfp8_native("a", 64, 96, "weight_scale_inv", "F32"), mxfp8_config()),
                    ErrorCode::damaged_checkpoint, {"a.weight_scale_inv", "F32"}));
  EXPECT_TRUE(fails(read_table(mxfp8_native("a", 64, 96),
                               R"({"quantization_config":{"quant_method":"mxfp8","weight_block_size":[128,128]}})"),
                    ErrorCode::unsupported_scheme, {"weight_block_size"}));
}

TEST(Mxfp8, RoutedExpertsInNvfp4) {
  const std::string config = mxfp8_config(R"(,"moe_quant_algo":"NVFP4","moe_quant_format":"nvfp4-pack-quantized")");
  Table table = nvfp4_ct("model.layers.3.moe.experts.0.w1", 64, 32);
  add(&table, mxfp8_native("model.layers.3.moe.shared_experts.up_proj", 64, 96));
  const auto model = read_table(table, config);
  ASSERT_EQ(said(model, "model.layers.3.moe.experts.0.w1"), "nvfp4_w4a4 64x32");
  EXPECT_TRUE(find(model->layers, "model.layers.3.moe.experts.0.w1")->scheme.weight.global_divides);
  EXPECT_EQ(said(model, "model.layers.3.moe.shared_experts.up_proj"), "mxfp8 64x96");
  EXPECT_EQ(said(read_table(nvfp4_ct("m.experts.0.w1", 64, 32, false), config), "m.experts.0.w1"), "nvfp4_w4a16 64x32");
}

}  // namespace
}  // namespace gearshift::test
