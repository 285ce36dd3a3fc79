// GPTQ: versions, widths, groups, rules for single modules (formats.md 5).
#include "layer/table.h"

namespace gearshift::test {
namespace {

std::string gptq_config(const std::string& more = "", const std::string& bits = "4", const std::string& group = "128") {
  return R"({"quantization_config":{"quant_method":"gptq","bits":)" + bits + R"(,"group_size":)" + group + more + "}}";
}
Table gptq(const std::string& m, int64_t n, int64_t k, int64_t bits = 4, int64_t group = 128, bool index = true) {
  const int64_t groups = group > 0 ? (k + group - 1) / group : 1;
  Table table = {{m + ".qweight", "I32", {k * bits / 32, n}},
                 {m + ".qzeros", "I32", {groups, n * bits / 32}},
                 {m + ".scales", "F16", {groups, n}}};
  if (index) table.push_back({m + ".g_idx", "I32", {k}});
  return table;
}

TEST(Gptq, FirstAndSecondVersion) {
  const auto first = read_table(gptq("a", 64, 256), gptq_config());
  ASSERT_EQ(said(first, "a"), "mixed_precision 64x256");
  const WeightScheme& weight = first->layers[0].scheme.weight;
  EXPECT_EQ(weight.format, Format::uint4);
  EXPECT_EQ(weight.storage, Storage::gptq_v1);
  EXPECT_EQ(weight.grouping, (Grouping{Grouping::Kind::group, 1, 128}));
  EXPECT_TRUE(weight.symmetric && !weight.act_order);
  const auto second = read_table(gptq("a", 64, 256), gptq_config(R"(,"checkpoint_format":"gptq_v2","sym":false)"));
  EXPECT_EQ(second->layers[0].scheme.weight.storage, Storage::gptq_v2);
  EXPECT_FALSE(second->layers[0].scheme.weight.symmetric);
}

TEST(Gptq, Widths) {
  for (const int64_t bits : {2, 3, 4, 8}) {
    const auto model = read_table(gptq("a", 64, 256, bits), gptq_config("", std::to_string(bits)));
    ASSERT_EQ(said(model, "a"), "mixed_precision 64x256") << bits;
    EXPECT_EQ(gearshift::bits(model->layers[0].scheme.weight.format), bits);
  }
}

TEST(Gptq, OneGroupARow) {
  const auto model = read_table(gptq("a", 64, 256, 4, -1), gptq_config(R"(,"desc_act":true)", "4", "-1"));
  ASSERT_EQ(said(model, "a"), "mixed_precision 64x256");
  EXPECT_EQ(model->layers[0].scheme.weight.grouping.kind, Grouping::Kind::whole_row);
  EXPECT_FALSE(model->layers[0].scheme.weight.act_order);
}

TEST(Trap24, ATableWithMoreGroupsThanTheConfigSaysDecides) {
  const auto model = read_table(gptq("a", 64, 256), gptq_config("", "4", "-1"));
  ASSERT_EQ(said(model, "a"), "mixed_precision 64x256");
  EXPECT_EQ(model->layers[0].scheme.weight.grouping, (Grouping{Grouping::Kind::group, 1, 128}));
}

TEST(Case38, ActOrderNeedsAnIndex) {
  const std::string ordered = gptq_config(R"(,"desc_act":true)");
  EXPECT_TRUE(read_table(gptq("a", 64, 256), ordered)->layers[0].scheme.weight.act_order);
  EXPECT_FALSE(read_table(gptq("a", 64, 256, 4, 128, false), ordered)->layers[0].scheme.weight.act_order);
}

TEST(Case35, LastGroupIncomplete) {
  EXPECT_EQ(said(read_table(gptq("a", 64, 4304, 4, 32), gptq_config("", "4", "32")), "a"), "mixed_precision 64x4304");
}

TEST(Case31, AScaleTableOfAnotherSplitIsNoOtherGroupSize) {
  Table table = gptq("a", 64, 2048);
  table[1].shape = {32, 8};
  table[2].shape = {32, 64};
  EXPECT_TRUE(
      fails(read_table(table, gptq_config()), ErrorCode::damaged_checkpoint, {"a.scales", "[32, 64]", "[16, 64]"}));
}

TEST(Case49, DamagedIntegers) {
  EXPECT_TRUE(fails(read_table(gptq("a", 64, 256), gptq_config("", "5")), ErrorCode::unsupported_scheme,
                    {"quantization_config.bits", "5-bit"}));
  for (const std::string group : {"0", "-2", "99999999999"}) {
    EXPECT_TRUE(fails(read_table(gptq("a", 64, 256), gptq_config("", "4", group)), ErrorCode::damaged_checkpoint,
                      {"group_size", group}));
  }
  EXPECT_TRUE(fails(read_table(gptq("a", 64, 256), gptq_config("", R"({"a":4})")), ErrorCode::damaged_checkpoint,
                    {"bits", "object"}));
  Table table = gptq("a", 64, 256);
  table[2].shape = {1, 64};
  EXPECT_TRUE(fails(read_table(table, gptq_config()), ErrorCode::damaged_checkpoint, {"a.scales", "[1, 64]"}));
  table = gptq("a", 64, 256);
  table[3].shape = {255};
  EXPECT_TRUE(fails(read_table(table, gptq_config()), ErrorCode::damaged_checkpoint, {"a.g_idx", "[256]"}));
}

TEST(Case50, ScalesMayBe32Bits) {
  Table table = gptq("a", 64, 256);
  table[2].dtype = "F32";
  EXPECT_EQ(read_table(table, gptq_config())->layers[0].scheme.weight.scale, DType::f32);
}

TEST(Gptq, RulesForSingleModulesInOrder) {
  const std::string config = gptq_config(
      R"(,"lm_head":false,"dynamic":{"lm_head":{},"-:.*attn.*":{},"+:.*\\.0\\.up":{"bits":8,"group_size":32,"sym":false},".*up":{"group_size":64}})");
  Table table = bf16("m.0.attn.q", 64, 32);
  add(&table, gptq("m.0.up", 64, 256, 8, 32));
  add(&table, gptq("m.1.up", 64, 256, 4, 64));
  add(&table, gptq("m.1.down", 64, 256));
  add(&table, bf16("lm_head", 64, 32));
  const auto model = read_table(table, config);
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(find(model->layers, "m.0.up")->scheme.weight.format, Format::uint8);
  EXPECT_FALSE(find(model->layers, "m.0.up")->scheme.weight.symmetric);
  EXPECT_EQ(find(model->layers, "m.1.up")->scheme.weight.grouping.cols, 64);
  EXPECT_EQ(find(model->layers, "m.1.down")->scheme.weight.grouping.cols, 128);
  EXPECT_EQ(said(model, "lm_head"), "bf16 64x32");
  EXPECT_TRUE(fails(read_table(gptq("m.0.attn.q", 64, 256), config), ErrorCode::damaged_checkpoint, {"m.0.attn.q"}));
}

TEST(Gptq, MarlinAndOtherFormatsAreRefusedByName) {
  const Table marlin = {{"a.B", "I32", {16, 128}}, {"a.s", "F16", {2, 64}}};
  EXPECT_TRUE(fails(read_table(marlin, gptq_config()), ErrorCode::unsupported_scheme, {"a", "marlin"}));
  EXPECT_TRUE(
      fails(read_table(marlin, gptq_config(R"(,"is_marlin_format":true)")), ErrorCode::unsupported_scheme, {"marlin"}));
  EXPECT_TRUE(fails(read_table(gptq("a", 64, 256), gptq_config(R"(,"checkpoint_format":"bitblas")")),
                    ErrorCode::unsupported_scheme, {"bitblas"}));
}

TEST(Gptq, ZeroPointsOfAsymmetricWeightsAreNeeded) {
  Table table = gptq("a", 64, 256);
  table.erase(table.begin() + 1);
  EXPECT_TRUE(fails(read_table(table, gptq_config(R"(,"sym":false)")), ErrorCode::damaged_checkpoint, {"a.qzeros"}));
  EXPECT_EQ(said(read_table(table, gptq_config()), "a"), "mixed_precision 64x256");
}

}  // namespace
}  // namespace gearshift::test
