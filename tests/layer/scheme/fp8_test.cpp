// fp8 and its relatives: config keys, exclusion, blocks, DeepSeek-V4, NVFP4 experts, Mistral, fbgemm (formats.md 4).
#include "layer/table.h"

namespace gearshift::test {
namespace {

std::string fp8_config(const std::string& more, const std::string& beside = "") {
  return R"({"num_hidden_layers":61,)" + beside + R"("quantization_config":{"quant_method":"fp8",)" + more + "}}";
}
const std::string kBlocks = R"("activation_scheme":"dynamic","fmt":"e4m3","weight_block_size":[128,128])";

Table fp8_block(const std::string& m, int64_t n, int64_t k, const std::string& dtype = "F32",
                const std::string& suffix = "weight_scale_inv") {
  return {{m + ".weight", "F8_E4M3", {n, k}}, {m + "." + suffix, dtype, {(n + 127) / 128, (k + 127) / 128}}};
}

TEST(Fp8, BlocksWithPartialEdges) {
  const auto model = read_table(fp8_block("model.layers.0.a", 576, 7168), fp8_config(kBlocks));
  ASSERT_EQ(said(model, "model.layers.0.a"), "fp8_block_w8a8 576x7168");
  const Scheme& scheme = model->layers[0].scheme;
  EXPECT_EQ(scheme.weight.grouping, (Grouping{Grouping::Kind::block, 128, 128}));
  EXPECT_EQ(scheme.weight.scale, DType::f32);
  EXPECT_EQ(scheme.activation->granularity, Granularity::token_group);
  EXPECT_EQ(scheme.activation->group, 128);
  EXPECT_TRUE(scheme.activation->dynamic);
  EXPECT_EQ(scheme.activation->rule, ScaleRule::amax);
}

TEST(Case33, HalfABlockAtTheEndHasItsOwnScale) {
  EXPECT_EQ(said(read_table(fp8_block("a", 576, 1536), fp8_config(kBlocks)), "a"), "fp8_block_w8a8 576x1536");
  EXPECT_EQ(said(read_table(fp8_block("a", 2112, 1536), fp8_config(kBlocks)), "a"), "fp8_block_w8a8 2112x1536");
  const Table floor = {{"a.weight", "F8_E4M3", {576, 1536}}, {"a.weight_scale_inv", "F32", {4, 12}}};
  EXPECT_TRUE(fails(read_table(floor, fp8_config(kBlocks)), ErrorCode::damaged_checkpoint,
                    {"a.weight_scale_inv", "[4, 12]", "[5, 12]"}));
}

TEST(Case43, ExponentScalesStayExponents) {
  for (const std::string dtype : {"F8_E8M0", "U8"}) {
    const auto model = read_table(fp8_block("a", 2048, 7168, dtype), fp8_config(kBlocks + R"(,"scale_fmt":"ue8m0")"));
    ASSERT_EQ(said(model, "a"), "fp8_block_w8a8 2048x7168") << dtype;
    EXPECT_EQ(model->layers[0].scheme.weight.scale, DType::f8_e8m0);
    EXPECT_EQ(model->layers[0].scheme.activation->rule, ScaleRule::amax_pow2);
  }
}

TEST(Fp8, BlockScalesMayBeSqueezed) {
  const Table table = {{"a.weight", "F8_E4M3", {128, 448}}, {"a.weight_scale_inv", "BF16", {4}}};
  EXPECT_EQ(said(read_table(table, fp8_config(kBlocks)), "a"), "fp8_block_w8a8 128x448");
}

TEST(Fp8, PerTensorStaticAndDynamic) {
  const Table weights = {{"a.weight", "F8_E4M3", {64, 32}}, {"a.weight_scale", "F32", {1}}};
  const auto dynamic = read_table(weights, fp8_config(R"("activation_scheme":"dynamic")"));
  ASSERT_EQ(said(dynamic, "a"), "fp8_w8a8 64x32");
  EXPECT_EQ(dynamic->layers[0].scheme.activation->granularity, Granularity::token);
  const std::string stored = fp8_config(R"("activation_scheme":"static")");
  EXPECT_TRUE(fails(read_table(weights, stored), ErrorCode::damaged_checkpoint, {"a.input_scale", "no such tensor"}));
  Table with_scale = weights;
  with_scale.push_back({"a.input_scale", "BF16", {}});
  const auto fixed = read_table(with_scale, stored);
  ASSERT_EQ(said(fixed, "a"), "fp8_w8a8 64x32");
  EXPECT_TRUE(fixed->layers[0].scheme.activation->stored_scale && !fixed->layers[0].scheme.activation->dynamic);
  // A stored scale that the config does not ask for.
  EXPECT_TRUE(fails(read_table(with_scale, fp8_config(R"("activation_scheme":"dynamic")")),
                    ErrorCode::damaged_checkpoint, {"a.input_scale"}));
}

TEST(Fp8, OtherNamesForTheSameScalars) {
  const Table table = {
      {"a.weight", "F8_E4M3", {64, 32}}, {"a.weight_scale_inv", "BF16", {}}, {"a.activation_scale", "BF16", {}}};
  EXPECT_EQ(said(read_table(table, fp8_config(R"("activation_scheme":"static","weight_block_size":null)")), "a"),
            "fp8_w8a8 64x32");
}

TEST(Fp8, ScalePerRowShowsInItsShape) {
  for (const Shape& shape : {Shape{64}, Shape{64, 1}}) {
    const Table table = {{"a.weight", "F8_E4M3", {64, 32}}, {"a.weight_scale", "F32", shape}};
    const auto model = read_table(table, fp8_config(R"("activation_scheme":"dynamic")"));
    ASSERT_EQ(said(model, "a"), "fp8_w8a8 64x32");
    EXPECT_EQ(model->layers[0].scheme.weight.grouping.kind, Grouping::Kind::row);
  }
}

TEST(Fp8, WeightAndActivationPerTensorFlags) {
  const Table table = {{"a.weight", "F8_E4M3", {64, 32}}, {"a.weight_scale_inv", "F32", {1}}};
  const auto model = read_table(table, fp8_config(kBlocks + R"(,"weight_per_tensor":true,"act_per_tensor":true)"));
  ASSERT_EQ(said(model, "a"), "fp8_w8a8 64x32");
  EXPECT_EQ(model->layers[0].scheme.weight.grouping.kind, Grouping::Kind::tensor);
  EXPECT_EQ(model->layers[0].scheme.activation->granularity, Granularity::tensor);
}

TEST(Fp8, WithoutAListScalesDecide) {
  Table table = fp8_block("model.layers.60.mlp.up_proj", 128, 128);
  for (const std::string name : {"model.layers.60.mlp.gate", "model.layers.61.eh_proj", "lm_head", "model.layers.0.x"})
    add(&table, bf16(name, 64, 32));
  const auto model = read_table(table, fp8_config(kBlocks));
  ASSERT_TRUE(model.ok()) << model.error().message();
  for (const LayerSpec& layer : model->layers)
    EXPECT_EQ(layer.scheme.quantized, layer.name.ends_with("up_proj")) << layer.name;
}

TEST(Fp8, EntriesArePrefixesOrSuffixes) {
  const std::string config = fp8_config(
      kBlocks + R"(,"modules_to_not_convert":["gate","lm_head","model.layers.1.self_attn","visual","m.*.fc1"])");
  Table table = bf16("model.layers.3.moe.gate", 64, 32);
  for (const std::string name : {"lm_head", "model.layers.1.self_attn.q_proj", "visual.blocks.0.qkv", "m.4.fc1.inner"})
    add(&table, bf16(name, 64, 32));
  add(&table, fp8_block("model.layers.3.moe.gate_proj", 128, 128));
  const auto model = read_table(table, config);
  ASSERT_TRUE(model.ok()) << model.error().message();
  for (const LayerSpec& layer : model->layers)
    EXPECT_EQ(layer.scheme.quantized, layer.name.ends_with("gate_proj")) << layer.name;
  // Excluded, and quantized all the same; not excluded, and float.
  EXPECT_TRUE(fails(read_table(fp8_block("model.layers.1.self_attn.q_proj", 128, 128), config),
                    ErrorCode::damaged_checkpoint, {"model.layers.1.self_attn.q_proj", "not quantized"}));
  EXPECT_TRUE(fails(read_table(bf16("model.layers.2.self_attn.q_proj", 64, 32), config), ErrorCode::damaged_checkpoint,
                    {"model.layers.2.self_attn.q_proj", "BF16 weight without scales", "FP8 tensors"}));
}

TEST(Trap10, AnFp8EntryThatEndsInsideAComponentOnlyExcusesFloat) {
  const std::string config = fp8_config(kBlocks + R"(,"ignored_layers":["model.layers.1"])");
  Table table = bf16("model.layers.17.fc", 64, 32);
  add(&table, fp8_block("model.layers.18.fc", 128, 128));
  const auto model = read_table(table, config);
  EXPECT_EQ(said(model, "model.layers.17.fc"), "bf16 64x32");
  EXPECT_EQ(said(model, "model.layers.18.fc"), "fp8_block_w8a8 128x128");
}

TEST(Fp8, ExpertStacks) {
  const Table table = {{"l.experts.gate_up_proj", "F8_E4M3", {4, 256, 384}},
                       {"l.experts.gate_up_proj_scale_inv", "F32", {4, 2, 3}}};
  const auto model = read_table(table, fp8_config(kBlocks));
  ASSERT_EQ(said(model, "l.experts.gate_up_proj"), "fp8_block_w8a8 256x384");
  EXPECT_EQ(model->layers[0].experts, 4);
}

TEST(Fp8, StaticActivationsOfExpertStacks) {
  const std::string name = "l.experts.gate_up_proj_activation_scale";
  const auto stack = [&](const Shape& shape) {
    return Table{{"l.experts.gate_up_proj", "F8_E4M3", {4, 256, 384}},
                 {"l.experts.gate_up_proj_scale", "F32", {4}},
                 {name, "F32", shape}};
  };
  const std::string by_config = fp8_config(R"("activation_scheme":"static")");
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{4}}) {
    const auto model = read_table(stack(shape), by_config);
    ASSERT_EQ(said(model, "l.experts.gate_up_proj"), "fp8_w8a8 256x384") << to_string(shape);
    EXPECT_TRUE(model->layers[0].scheme.activation->stored_scale);
    // Made at run time, as this config says, and stored as well: one of them is wrong.
    EXPECT_TRUE(fails(read_table(stack(shape), fp8_config(R"("activation_scheme":"dynamic")")),
                      ErrorCode::damaged_checkpoint, {name}));
  }
  EXPECT_TRUE(fails(read_table(stack({2}), by_config), ErrorCode::damaged_checkpoint, {name, "[2]", "[4]"}));
}

// Weights may be e5m2; activations beside them are e4m3.
TEST(Fp8, ActivationsBesideE5m2WeightsAreE4m3) {
  const Table table = {{"a.weight", "F8_E5M2", {64, 32}}, {"a.weight_scale", "F32", {}}, {"a.input_scale", "F32", {}}};
  const auto model = read_table(table, fp8_config(R"("activation_scheme":"static","fmt":"e5m2")"));
  ASSERT_EQ(said(model, "a"), "fp8_w8a8 64x32");
  EXPECT_EQ(model->layers[0].scheme.weight.format, Format::e5m2);
  EXPECT_EQ(model->layers[0].scheme.activation->format, Format::e4m3);
  const auto dynamic = read_table({table[0], table[1]}, fp8_config(R"("activation_scheme":"dynamic","fmt":"e5m2")"));
  ASSERT_EQ(said(dynamic, "a"), "fp8_w8a8 64x32");
  EXPECT_EQ(dynamic->layers[0].scheme.activation->format, Format::e4m3);
}

TEST(Fp8, BadKeys) {
  const Table table = fp8_block("a", 128, 128);
  EXPECT_TRUE(fails(read_table(table, fp8_config(R"("weight_block_size":[0,128])")), ErrorCode::damaged_checkpoint,
                    {"weight_block_size"}));
  EXPECT_TRUE(fails(read_table(table, fp8_config(R"("weight_block_size":128)")), ErrorCode::damaged_checkpoint,
                    {"weight_block_size"}));
  EXPECT_TRUE(fails(read_table(table, fp8_config(R"("activation_scheme":"odd")")), ErrorCode::unsupported_scheme,
                    {"activation_scheme", "odd"}));
  EXPECT_TRUE(fails(read_table(table, fp8_config(kBlocks + R"(,"ignore":[1])")), ErrorCode::damaged_checkpoint,
                    {"quantization_config.ignore"}));
  const Table no_scale = {{"a.weight", "F8_E4M3", {128, 128}}};
  EXPECT_TRUE(fails(read_table(no_scale, fp8_config(kBlocks)), ErrorCode::damaged_checkpoint,
                    {"a.weight_scale_inv", "no such tensor"}));
}

// ---- DeepSeek-V4 ----

Table fp4_expert(const std::string& m, int64_t n, int64_t k, const std::string& dtype = "I8") {
  return {{m + ".weight", dtype, {n, k / 2}}, {m + ".scale", "F8_E8M0", {n, k / 32}}};
}

TEST(DeepSeekV4, Fp4ExpertsBesideFp8Layers) {
  Table table = fp8_block("layers.5.attn.wq_a", 1024, 4096, "F8_E8M0", "scale");
  add(&table, fp4_expert("layers.5.ffn.experts.0.w1", 64, 128));
  add(&table, fp8_block("layers.5.ffn.shared_experts.w1", 128, 128, "F8_E8M0", "scale"));
  add(&table, bf16("layers.5.ffn.gate", 64, 32));
  const auto model = read_table(table, fp8_config(kBlocks, R"("expert_dtype":"fp4",)"));
  EXPECT_EQ(said(model, "layers.5.attn.wq_a"), "fp8_block_w8a8 1024x4096");
  EXPECT_EQ(said(model, "layers.5.ffn.experts.0.w1"), "mxfp4 64x128");
  EXPECT_FALSE(find(model->layers, "layers.5.ffn.experts.0.w1")->scheme.activation);
  EXPECT_EQ(said(model, "layers.5.ffn.shared_experts.w1"), "fp8_block_w8a8 128x128");
  EXPECT_EQ(said(model, "layers.5.ffn.gate"), "bf16 64x32");
}

TEST(Trap30, WithoutExpertDtypeTheStoredTypeDecides) {
  const std::string expert = "layers.0.ffn.experts.0.w1";
  EXPECT_EQ(said(read_table(fp4_expert(expert, 64, 128, "U8"), fp8_config(kBlocks)), expert), "mxfp4 64x128");
  EXPECT_EQ(said(read_table(fp8_block(expert, 128, 128, "F32", "scale"), fp8_config(kBlocks)), expert),
            "fp8_block_w8a8 128x128");
  EXPECT_TRUE(fails(read_table(fp4_expert(expert, 64, 128), fp8_config(kBlocks, R"("expert_dtype":"fp8",)")),
                    ErrorCode::damaged_checkpoint, {expert + ".weight", "expert_dtype"}));
  EXPECT_TRUE(fails(read_table(fp8_block(expert, 128, 128), fp8_config(kBlocks, R"("expert_dtype":"fp4",)")),
                    ErrorCode::damaged_checkpoint, {expert + ".weight", "expert_dtype"}));
  EXPECT_TRUE(fails(read_table(fp4_expert("layers.0.attn.wo_b", 64, 128), fp8_config(kBlocks)),
                    ErrorCode::damaged_checkpoint, {"layers.0.attn.wo_b.weight", "F8_E4M3"}));
}

TEST(Trap14, BesideNvfp4ExpertsIgnoreMeansFp8) {
  const std::string config = fp8_config(
      kBlocks +
      R"(,"moe_quant_algo":"NVFP4","quant_algo":"MIXED_PRECISION","quantized_layers":{"layers.0.ffn.experts":{"quant_algo":"NVFP4"}},"ignore":["*.attn.*","*.ffn.shared_experts.*","head","mtp.*"])");
  Table table = nvfp4_modelopt("layers.0.ffn.experts.3.w1", 64, 32);
  add(&table, fp8_block("layers.0.attn.wq_a", 128, 128, "F8_E8M0", "scale"));
  add(&table, fp8_block("layers.0.ffn.shared_experts.w1", 128, 128, "F8_E8M0", "scale"));
  add(&table, fp4_expert("mtp.0.ffn.experts.3.w1", 64, 128));
  add(&table, bf16("head", 64, 32));
  const auto model = read_table(table, config);
  EXPECT_EQ(said(model, "layers.0.ffn.experts.3.w1"), "nvfp4_w4a4 64x32");
  EXPECT_EQ(said(model, "layers.0.attn.wq_a"), "fp8_block_w8a8 128x128");
  EXPECT_EQ(said(model, "layers.0.ffn.shared_experts.w1"), "fp8_block_w8a8 128x128");
  EXPECT_EQ(said(model, "mtp.0.ffn.experts.3.w1"), "mxfp4 64x128");
  EXPECT_EQ(said(model, "head"), "bf16 64x32");
  EXPECT_TRUE(fails(read_table(fp8_block("layers.0.ffn.experts.3.w1", 128, 128), config), ErrorCode::damaged_checkpoint,
                    {"layers.0.ffn.experts.3.w1"}));
}

TEST(Trap26, Int4UnderTheNamesOfFp8BlocksIsRefused) {
  const Table table = {{"a.experts.0.w1.weight", "I8", {64, 64}}, {"a.experts.0.w1.weight_scale_inv", "BF16", {64, 1}}};
  EXPECT_TRUE(
      fails(read_table(table, fp8_config(kBlocks)), ErrorCode::unsupported_scheme, {"a.experts.0.w1", "tensorrt-llm"}));
}

TEST(Case51, TiedQuantizedEmbeddingIsAQuantizedHead) {
  const auto model =
      read_table(fp8_block("model.embed_tokens", 256, 128),
                 fp8_config(kBlocks + R"(,"modules_to_not_convert":["lm_head"])", R"("tie_word_embeddings":true,)"));
  EXPECT_EQ(said(model, "lm_head"), "fp8_block_w8a8 256x128");
}

// ---- Mistral, fbgemm ----

TEST(Mistral, NativeNamesUnderParamsJson) {
  const Table table = {{"layers.0.attention.wq.weight", "F8_E4M3", {64, 32}},
                       {"layers.0.attention.wq.qscale_weight", "F32", {}},
                       {"layers.0.attention.wq.qscale_act", "F32", {}},
                       {"output.weight", "BF16", {64, 32}}};
  const auto read = [&](const std::string& activations) {
    return TableCheckpoint(table, {{"params.json", R"({"quantization":{"qformat_weight":"fp8_e4m3","qscheme_act":)" +
                                                       activations + "}}"}})
        .read();
  };
  const auto stored = read(R"("TENSOR")");
  ASSERT_EQ(said(stored, "layers.0.attention.wq"), "fp8_w8a8 64x32");
  EXPECT_FALSE(find(stored->layers, "layers.0.attention.wq")->scheme.activation->dynamic);
  EXPECT_EQ(said(stored, "output"), "bf16 64x32");
  EXPECT_TRUE(find(read(R"("NO_SCALES")")->layers, "layers.0.attention.wq")->scheme.activation->dynamic);
  EXPECT_TRUE(fails(read(R"("BLOCK")"), ErrorCode::unsupported_scheme, {"params.json", "qscheme_act"}));
}

TEST(Fbgemm, RowsAndAnUpperBound) {
  const std::string config =
      R"({"quantization_config":{"quant_method":"fbgemm_fp8","activation_scale_ub":1200.0,"modules_to_not_convert":["lm_head.weight","model.layers.0"]}})";
  Table table = {{"model.layers.1.q.weight", "F8_E4M3", {64, 32}}, {"model.layers.1.q.weight_scale", "F32", {64, 1}}};
  add(&table, bf16("lm_head", 64, 32));
  add(&table, bf16("model.layers.0.q", 64, 32));
  const auto model = read_table(table, config);
  ASSERT_EQ(said(model, "model.layers.1.q"), "fp8_w8a8 64x32");
  const Scheme& scheme = find(model->layers, "model.layers.1.q")->scheme;
  EXPECT_EQ(scheme.weight.grouping.kind, Grouping::Kind::row);
  EXPECT_EQ(scheme.activation->granularity, Granularity::token);
  EXPECT_EQ(scheme.activation->amax_limit, 1200);
  EXPECT_EQ(said(model, "lm_head"), "bf16 64x32");
  EXPECT_TRUE(
      fails(read_table(table, R"({"quantization_config":{"quant_method":"fbgemm_fp8","activation_scale_ub":0}})"),
            ErrorCode::damaged_checkpoint, {"activation_scale_ub"}));
}

TEST(Fbgemm, StacksInTheOrderOfTheProduct) {
  const Table table = {{"l.experts.down_proj", "F8_E4M3", {4, 32, 64}},
                       {"l.experts.down_proj_scale", "F32", {4, 1, 64}}};
  const auto model = read_table(table, R"({"quantization_config":{"quant_method":"fbgemm_fp8"}})");
  ASSERT_EQ(said(model, "l.experts.down_proj"), "fp8_w8a8 64x32");
  EXPECT_EQ(model->layers[0].scheme.weight.storage, Storage::dense_transposed);
}

}  // namespace
}  // namespace gearshift::test
