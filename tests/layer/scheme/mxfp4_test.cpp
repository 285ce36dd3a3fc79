// quant_method "mxfp4": gpt-oss (formats.md 7).
#include "layer/table.h"

namespace gearshift::test {
namespace {

const std::string kMxfp4Config =
    R"({"quantization_config":{"quant_method":"mxfp4","modules_to_not_convert":["model.layers.*.self_attn","model.layers.*.mlp.router","model.embed_tokens","lm_head"]}})";
const std::string kExperts = "model.layers.0.mlp.experts.";

Table gpt_oss_stack(const std::string& stem, int64_t experts, int64_t n, int64_t k) {
  return {{kExperts + stem + "_blocks", "U8", {experts, n, k / 32, 16}},
          {kExperts + stem + "_scales", "U8", {experts, n, k / 32}},
          {kExperts + stem + "_bias", "BF16", {experts, n}}};
}

TEST(GptOss, StacksOfBlocksWithInterleavedRows) {
  Table table = gpt_oss_stack("gate_up_proj", 4, 96, 64);
  add(&table, gpt_oss_stack("down_proj", 4, 64, 96));
  add(&table, bf16("model.layers.0.self_attn.q_proj", 64, 32));
  add(&table, bf16("model.layers.0.mlp.router", 4, 32));
  const auto model = read_table(table, kMxfp4Config);
  ASSERT_EQ(said(model, kExperts + "gate_up_proj"), "mxfp4 96x64");
  const LayerSpec& merged = *find(model->layers, kExperts + "gate_up_proj");
  EXPECT_EQ(merged.row_order, RowOrder::interleaved);
  EXPECT_EQ(merged.experts, 4);
  EXPECT_TRUE(merged.bias && merged.stacked);
  EXPECT_FALSE(merged.scheme.activation);
  EXPECT_EQ(merged.weight_bytes, uint64_t{4 * 96 * (32 + 2)});
  EXPECT_EQ(find(model->layers, kExperts + "down_proj")->row_order, RowOrder::concatenated);
  EXPECT_EQ(said(model, "model.layers.0.mlp.router"), "bf16 4x32");
}

TEST(GptOss, Contradictions) {
  Table short_scales = gpt_oss_stack("down_proj", 4, 64, 96);
  short_scales[1].shape = {4, 64, 2};
  EXPECT_TRUE(fails(read_table(short_scales, kMxfp4Config), ErrorCode::damaged_checkpoint, {"down_proj_scales"}));
  Table wide = gpt_oss_stack("down_proj", 4, 64, 96);
  wide[0].shape = {4, 64, 6, 8};
  EXPECT_TRUE(fails(read_table(wide, kMxfp4Config), ErrorCode::damaged_checkpoint, {"down_proj_blocks", "16"}));
  for (const size_t missing : {size_t{0}, size_t{1}}) {
    Table half = gpt_oss_stack("down_proj", 4, 64, 96);
    const std::string name = half[missing].name;
    half.erase(half.begin() + static_cast<std::ptrdiff_t>(missing));
    EXPECT_TRUE(fails(read_table(half, kMxfp4Config), ErrorCode::damaged_checkpoint, {name, "no such tensor"}));
  }
  EXPECT_TRUE(fails(read_table({{"block.0.mlp.mlp1_weight.scales", "U8", {4, 96, 2}}}, kMxfp4Config),
                    ErrorCode::damaged_checkpoint, {"block.0.mlp.mlp1_weight.blocks", "no such tensor"}));
  EXPECT_TRUE(fails(read_table({{kExperts + "down_proj", "BF16", {4, 64, 96}}}, kMxfp4Config),
                    ErrorCode::damaged_checkpoint, {"experts.down_proj", "MXFP4"}));
}

}  // namespace
}  // namespace gearshift::test
