// Which modules become one row (cli.md, "layers"), and in which order rows stand.
#include <algorithm>
#include <random>

#include "layer/table.h"

namespace gearshift::test {
namespace {

std::vector<LayerSpec> fused(const Table& table, const std::string& config) {
  Result<ModelLayers> model = read_table(table, config);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message());
  return model.ok() ? fuse(std::move(model->layers)) : std::vector<LayerSpec>{};
}

TEST(Fuse, SiblingsJoinInTheOrderOfTheirRows) {
  Table table;
  for (const std::string layer : {"l.10.", "l.2."}) {
    for (const std::string part : {"v_proj", "k_proj", "q_proj"})
      add(&table, bf16(layer + "attn." + part, part == "q_proj" ? 64 : 16, 32));
    for (const std::string part : {"up_proj", "gate_proj", "down_proj"})
      add(&table, bf16(layer + "mlp." + part, 48, 32));
  }
  const auto rows = fused(table, "{}");
  EXPECT_EQ(names(rows), (Names{"l.2.attn.qkv_proj", "l.2.mlp.down_proj", "l.2.mlp.gate_up_proj", "l.10.attn.qkv_proj",
                                "l.10.mlp.down_proj", "l.10.mlp.gate_up_proj"}));
  EXPECT_EQ(rows[0].parts, (Names{"l.2.attn.q_proj", "l.2.attn.k_proj", "l.2.attn.v_proj"}));
  EXPECT_EQ(rows[0].n, 96);
  ASSERT_EQ(rows[0].modules.size(), 3u);
  EXPECT_EQ(rows[0].modules[1].n, 16);
  EXPECT_EQ(rows[0].weight_bytes, 96u * 32 * 2);
  EXPECT_EQ(rows[2].parts, (Names{"l.2.mlp.gate_proj", "l.2.mlp.up_proj"}));
  EXPECT_TRUE(rows[1].parts.empty());
}

TEST(Fuse, OtherNamesOfTheSame) {
  Table table;
  for (const std::string part : {"query", "key", "value", "dense"}) add(&table, bf16("a." + part, 32, 32));
  for (const std::string part : {"w1", "w2", "w3"}) add(&table, bf16("b." + part, 32, 32));
  EXPECT_EQ(names(fused(table, "{}")), (Names{"a.dense", "a.qkv", "b.w13", "b.w2"}));
}

TEST(Fuse, AnyTwoPresentSiblingsJoin) {
  Table table = bf16("a.k_proj", 16, 32);
  add(&table, bf16("a.v_proj", 16, 32));
  add(&table, bf16("b.gate_proj", 16, 32));
  const auto rows = fused(table, "{}");
  EXPECT_EQ(names(rows), (Names{"a.qkv_proj", "b.gate_proj"}));
  EXPECT_EQ(rows[0].parts, (Names{"a.k_proj", "a.v_proj"}));
}

TEST(Fuse, UnequalInnerDimensionsStayApart) {
  Table table = bf16("a.gate_proj", 16, 32);
  add(&table, bf16("a.up_proj", 16, 64));
  EXPECT_EQ(names(fused(table, "{}")), (Names{"a.gate_proj", "a.up_proj"}));
}

TEST(Fuse, FloatWeightsOfDifferentTypesStayApart) {
  const Table table = {{"a.gate_proj.weight", "BF16", {16, 32}}, {"a.up_proj.weight", "F32", {16, 32}}};
  EXPECT_EQ(names(fused(table, "{}")), (Names{"a.gate_proj", "a.up_proj"}));
}

TEST(Fuse, ABiasOfOnePartMakesABiasOfTheRow) {
  Table table = bf16("a.q_proj", 64, 32);
  add(&table, bf16("a.k_proj", 16, 32));
  table.push_back({"a.q_proj.bias", "BF16", {64}});
  const auto rows = fused(table, "{}");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0].bias);
  EXPECT_EQ(rows[0].modules[1].tensors.size(), 1u);
}

TEST(Case46, HalvesKeepTheirOwnGlobalScales) {
  Table table = nvfp4_ct("a.gate_proj", 64, 32);
  add(&table, nvfp4_ct("a.up_proj", 64, 32));
  const auto rows = fused(table, ct_config(R"("g":)" + nvfp4_group(R"(["Linear"])")));
  ASSERT_EQ(names(rows), (Names{"a.gate_up_proj"}));
  for (const Module& module : rows[0].modules) {
    EXPECT_EQ(std::count_if(module.tensors.begin(), module.tensors.end(),
                            [](const StoredTensor& t) { return t.role == TensorRole::weight_global_scale; }),
              1);
  }
}

TEST(Case47, PartsOfDifferentSchemesStayApartInAnyOrder) {
  const std::string mx =
      R"({"format":"mxfp8-quantized","targets":["re:.*k_proj"],"weights":{"num_bits":8,"type":"float","strategy":"group","group_size":32,"scale_dtype":"torch.uint8"}})";
  std::vector<std::string> groups = {R"("q":)" + nvfp4_group(R"(["re:.*q_proj"])"), R"("k":)" + mx};
  Names order = {"q_proj", "k_proj", "v_proj"};
  std::sort(order.begin(), order.end());
  do {
    Table table;
    for (const std::string& part : order) {
      if (part == "q_proj") add(&table, nvfp4_ct("a.q_proj", 64, 32));
      if (part == "k_proj")
        add(&table, {{"a.k_proj.weight", "F8_E4M3", {64, 32}}, {"a.k_proj.weight_scale", "U8", {64, 1}}});
      if (part == "v_proj") add(&table, bf16("a.v_proj", 64, 32));
    }
    for (int swap = 0; swap < 2; ++swap) {
      std::swap(groups[0], groups[1]);
      const auto rows = fused(table, ct_config(groups[0] + "," + groups[1], R"(["a.v_proj"])"));
      ASSERT_EQ(names(rows), (Names{"a.k_proj", "a.q_proj", "a.v_proj"}));
      EXPECT_EQ(rows[0].family, Family::mxfp8);
      EXPECT_EQ(rows[1].family, Family::nvfp4_w4a4);
      EXPECT_EQ(rows[2].family, Family::bf16);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Fuse, TwoOfThreeThatAgreeJoin) {
  Table table = fp8_channel("a.q_proj", 64, 32);
  add(&table, bf16("a.k_proj", 16, 32));
  add(&table, fp8_channel("a.v_proj", 16, 32));
  const auto rows = fused(table, ct_config(R"("g":)" + fp8_group(R"(["Linear"])"), R"(["a.k_proj"])"));
  EXPECT_EQ(names(rows), (Names{"a.k_proj", "a.qkv_proj"}));
  EXPECT_EQ(rows[1].parts, (Names{"a.q_proj", "a.v_proj"}));
}

// ---- experts ----

Table experts(const std::string& prefix, int64_t count, const Names& parts) {
  Table table;
  for (int64_t e = 0; e < count; ++e) {
    for (const std::string& part : parts)
      add(&table, part == "down_proj" || part == "w2" ? bf16(prefix + std::to_string(e) + "." + part, 32, 48)
                                                      : bf16(prefix + std::to_string(e) + "." + part, 48, 32));
  }
  return table;
}

TEST(Fuse, ExpertsOfALayerAreTwoRows) {
  const auto rows = fused(experts("l.0.mlp.experts.", 12, {"gate_proj", "up_proj", "down_proj"}), "{}");
  ASSERT_EQ(names(rows), (Names{"l.0.mlp.experts.down_proj", "l.0.mlp.experts.gate_up_proj"}));
  EXPECT_EQ(rows[0].parts, (Names{"l.0.mlp.experts.*.down_proj"}));
  EXPECT_EQ(rows[1].parts, (Names{"l.0.mlp.experts.*.gate_proj", "l.0.mlp.experts.*.up_proj"}));
  for (const LayerSpec& row : rows) {
    EXPECT_EQ(row.kind, LayerKind::experts);
    EXPECT_EQ(row.experts, 12);
    EXPECT_FALSE(row.stacked);
  }
  EXPECT_EQ(rows[1].n, 96);
  ASSERT_EQ(rows[1].modules.size(), 24u);
  EXPECT_EQ(rows[1].modules[20].name, "l.0.mlp.experts.10.gate_proj");
  EXPECT_EQ(rows[1].modules[21].name, "l.0.mlp.experts.10.up_proj");
  EXPECT_EQ(rows[1].weight_bytes, 12u * 96 * 32 * 2);
}

TEST(Fuse, ExpertsOfOtherArchitectures) {
  EXPECT_EQ(names(fused(experts("l.moe.experts.", 2, {"w1", "w2", "w3"}), "{}")),
            (Names{"l.moe.experts.w13", "l.moe.experts.w2"}));
  EXPECT_EQ(names(fused(experts("b.mixer.experts.", 3, {"up_proj", "down_proj"}), "{}")),
            (Names{"b.mixer.experts.down_proj", "b.mixer.experts.up_proj"}));
}

TEST(Fuse, ExpertsThatDisagreeKeepTheirOwnRows) {
  Table table = experts("l.experts.", 3, {"gate_proj", "up_proj", "down_proj"});
  for (Row& row : table) {
    if (row.name == "l.experts.1.down_proj.weight") row.shape = {40, 48};
  }
  const auto rows = fused(table, "{}");
  EXPECT_EQ(names(rows), (Names{"l.experts.gate_up_proj", "l.experts.0.down_proj", "l.experts.1.down_proj",
                                "l.experts.2.down_proj"}));
  EXPECT_EQ(rows[2].experts, 1);
  EXPECT_EQ(rows[2].kind, LayerKind::experts);
}

// A row knows its experts by position: numbers with holes would be lost in it.
TEST(Fuse, ExpertsWithHolesInTheirNumbersKeepTheirOwnRows) {
  Table table = experts("l.experts.", 6, {"gate_proj", "up_proj", "down_proj"});
  std::erase_if(table, [](const Row& row) { return row.name.starts_with("l.experts.2."); });
  EXPECT_EQ(
      names(fused(table, "{}")),
      (Names{"l.experts.0.down_proj", "l.experts.0.gate_up_proj", "l.experts.1.down_proj", "l.experts.1.gate_up_proj",
             "l.experts.3.down_proj", "l.experts.3.gate_up_proj", "l.experts.4.down_proj", "l.experts.4.gate_up_proj",
             "l.experts.5.down_proj", "l.experts.5.gate_up_proj"}));
  // The slice of an expert-parallel rank begins anywhere.
  std::erase_if(table, [](const Row& row) { return row.name < "l.experts.3."; });
  const auto slice = fused(table, "{}");
  ASSERT_EQ(names(slice), (Names{"l.experts.down_proj", "l.experts.gate_up_proj"}));
  EXPECT_EQ(slice[0].experts, 3);
  EXPECT_EQ(slice[0].modules[0].name, "l.experts.3.down_proj");
  Table twice = experts("l.experts.", 2, {"down_proj"});
  add(&twice, bf16("l.experts.01.down_proj", 32, 48));
  EXPECT_EQ(fused(twice, "{}").size(), 3u);
}

TEST(Fuse, AnExpertWithoutAProjectionKeepsItApart) {
  Table table = experts("l.experts.", 2, {"gate_proj", "up_proj", "down_proj"});
  std::erase_if(table, [](const Row& row) { return row.name == "l.experts.1.down_proj.weight"; });
  EXPECT_EQ(names(fused(table, "{}")), (Names{"l.experts.gate_up_proj", "l.experts.0.down_proj"}));
}

TEST(Fuse, StoredStacksAreOneRowEitherWay) {
  const Table table = {{"l.mlp.experts.gate_up_proj", "BF16", {4, 96, 32}},
                       {"l.mlp.experts.down_proj", "BF16", {4, 32, 48}}};
  const std::string config = R"({"hidden_size":32})";
  const auto model = read_table(table, config);
  EXPECT_EQ(said(model, "l.mlp.experts.gate_up_proj"), "bf16 96x32");
  EXPECT_EQ(said(model, "l.mlp.experts.down_proj"), "bf16 32x48");
  const auto rows = fused(table, config);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[0].stacked && rows[0].experts == 4 && rows[0].kind == LayerKind::experts);
}

TEST(Fuse, OlderStacksAreStoredTransposed) {
  const Table table = {{"l.mlp.experts.gate_up_proj", "BF16", {4, 32, 96}},
                       {"l.mlp.experts.down_proj", "BF16", {4, 48, 32}}};
  const auto model = read_table(table, R"({"text_config":{"hidden_size":32}})");
  EXPECT_EQ(said(model, "l.mlp.experts.gate_up_proj"), "bf16 96x32");
  EXPECT_EQ(said(model, "l.mlp.experts.down_proj"), "bf16 32x48");
  for (const LayerSpec& layer : model->layers) EXPECT_EQ(layer.scheme.weight.storage, Storage::dense_transposed);
}

TEST(Fuse, OrderOfInputDoesNotMatter) {
  Table table = experts("l.0.experts.", 11, {"gate_proj", "up_proj", "down_proj"});
  for (const std::string part : {"q_proj", "k_proj", "v_proj", "o_proj"}) add(&table, bf16("l.0." + part, 32, 32));
  Result<ModelLayers> model = read_table(table, "{}");
  ASSERT_TRUE(model.ok());
  const Names wanted = names(fuse(model->layers));
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::shuffle(model->layers.begin(), model->layers.end(), random);
  EXPECT_EQ(names(fuse(model->layers)), wanted);
}

TEST(LayerClass, SeparatesWhatDecisionsDependOn) {
  Table table = bf16("a.fc", 64, 32);
  const auto model = read_table(table, "{}");
  const LayerSpec base = model->layers.at(0);
  const auto differs = [&](auto change) {
    LayerSpec other = base;
    change(other);
    return layer_class(other) != layer_class(base);
  };
  EXPECT_TRUE(differs([](LayerSpec& l) { l.n = 65; }));
  EXPECT_TRUE(differs([](LayerSpec& l) { l.k = 33; }));
  EXPECT_TRUE(differs([](LayerSpec& l) { l.bias = true; }));
  EXPECT_TRUE(differs([](LayerSpec& l) { l.modules.push_back(l.modules[0]); }));
  EXPECT_TRUE(differs([](LayerSpec& l) { l.modules[0].tensors[0].dtype = DType::f32; }));
  EXPECT_TRUE(differs([](LayerSpec& l) { l.row_order = RowOrder::interleaved; }));
  EXPECT_TRUE(differs([](LayerSpec& l) { l.scheme.activation = ActivationScheme{}; }));
  EXPECT_FALSE(differs([](LayerSpec& l) { l.name = "b.fc"; }));
}

}  // namespace
}  // namespace gearshift::test
