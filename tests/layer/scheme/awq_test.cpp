// AWQ (formats.md 6).
#include "layer/table.h"

namespace gearshift::test {
namespace {

std::string awq_config(const std::string& more) {
  return R"({"quantization_config":{"quant_method":"awq",)" + more + "}}";
}
Table awq(const std::string& m, int64_t n, int64_t k, int64_t group) {
  const int64_t groups = group > 0 ? (k + group - 1) / group : 1;
  return {{m + ".qweight", "I32", {k, n / 8}},
          {m + ".qzeros", "I32", {groups, n / 8}},
          {m + ".scales", "F16", {groups, n}}};
}
const std::string kAwqKeys = R"("bits":4,"group_size":64,"zero_point":true,"version":"gemm")";

TEST(Awq, Gemm) {
  for (const std::string& keys : {kAwqKeys, std::string(R"("w_bit":4,"q_group_size":64,"version":"GEMM")")}) {
    const auto model = read_table(awq("a", 64, 256, 64), awq_config(keys));
    ASSERT_EQ(said(model, "a"), "mixed_precision 64x256");
    const WeightScheme& weight = model->layers[0].scheme.weight;
    EXPECT_EQ(weight.format, Format::uint4);
    EXPECT_EQ(weight.storage, Storage::awq);
    EXPECT_FALSE(weight.symmetric);
    EXPECT_EQ(weight.grouping.cols, 64);
  }
}

TEST(Case06, EveryGroupSize) {
  for (const int64_t group : {32, 64, 128, 256, -1}) {
    const auto model = read_table(awq("a", 64, 512, group),
                                  awq_config(R"("bits":4,"zero_point":true,"group_size":)" + std::to_string(group)));
    ASSERT_EQ(said(model, "a"), "mixed_precision 64x512") << group;
    EXPECT_EQ(model->layers[0].scheme.weight.grouping.kind,
              group > 0 ? Grouping::Kind::group : Grouping::Kind::whole_row);
  }
}

TEST(Case31, AwqKeepsTheGroupOfTheConfigInAPartialSplit) {
  const auto model = read_table(awq("a", 64, 2752, 128), awq_config(R"("bits":4,"group_size":128)"));
  ASSERT_EQ(said(model, "a"), "mixed_precision 64x2752");
  EXPECT_EQ(model->layers[0].scheme.weight.grouping.cols, 128);
}

TEST(Case31, AScaleTableOfAnotherSplit) {
  Table table = awq("a", 64, 2048, 128);
  table[1].shape = {32, 8};
  table[2].shape = {32, 64};
  EXPECT_TRUE(fails(read_table(table, awq_config(R"("bits":4,"group_size":128)")), ErrorCode::damaged_checkpoint,
                    {"a.scales", "32 scale rows for 16 groups"}));
}

TEST(Awq, EntriesAreSubstrings) {
  const std::string config = awq_config(kAwqKeys + R"(,"modules_to_not_convert":["self_attn","gate"])");
  Table table = bf16("m.0.self_attn.q", 64, 32);
  add(&table, bf16("m.0.mlp.gate", 64, 32));
  add(&table, awq("m.0.mlp.gate_proj", 64, 256, 64));
  add(&table, bf16("lm_head", 64, 32));
  const auto model = read_table(table, config);
  EXPECT_EQ(said(model, "m.0.self_attn.q"), "bf16 64x32");
  EXPECT_EQ(said(model, "m.0.mlp.gate_proj"), "mixed_precision 64x256");
  EXPECT_TRUE(fails(read_table(awq("m.0.self_attn.q", 64, 256, 64), config), ErrorCode::damaged_checkpoint,
                    {"m.0.self_attn.q"}));
}

TEST(Awq, OtherOrdersAndWidthsAreRefused) {
  const Table table = awq("a", 64, 256, 64);
  EXPECT_TRUE(fails(read_table(table, awq_config(R"("bits":4,"version":"gemv")")), ErrorCode::unsupported_scheme,
                    {"version", "gemv"}));
  EXPECT_TRUE(fails(read_table(table, awq_config(R"("bits":8,"version":"gemm")")), ErrorCode::unsupported_scheme,
                    {"bits", "8-bit"}));
  Table no_zeros = table;
  no_zeros.erase(no_zeros.begin() + 1);
  EXPECT_TRUE(fails(read_table(no_zeros, awq_config(R"("bits":4,"group_size":64,"zero_point":false)")),
                    ErrorCode::damaged_checkpoint, {"a.qzeros"}));
}

}  // namespace
}  // namespace gearshift::test
