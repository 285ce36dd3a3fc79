// ModelOpt: config spellings, exclusion, mixed precision and tensors (formats.md section 3).
#include "layer/table.h"

namespace gearshift::test {
namespace {

TEST(ModelOpt, Nvfp4MultipliesAndDivides) {
  const auto model = read_table(nvfp4_modelopt("a.fc", 64, 32), modelopt_config(R"("quant_algo":"NVFP4")"));
  ASSERT_EQ(said(model, "a.fc"), "nvfp4_w4a4 64x32");
  const Scheme& scheme = model->layers[0].scheme;
  EXPECT_TRUE(scheme.weight.global_scale && !scheme.weight.global_divides);
  EXPECT_TRUE(scheme.activation->dynamic && scheme.activation->stored_scale && !scheme.activation->stored_multiplies);
}

TEST(Case41, BothExportersLeadToOneFamilyWithOppositeDirections) {
  const auto divides = read_table(nvfp4_ct("a.fc", 256, 256), ct_config(R"("g":)" + nvfp4_group(R"(["Linear"])")));
  const auto multiplies = read_table(nvfp4_modelopt("a.fc", 256, 256), modelopt_config(R"("quant_algo":"NVFP4")"));
  EXPECT_EQ(said(divides, "a.fc"), said(multiplies, "a.fc"));
  EXPECT_NE(divides->layers[0].scheme.weight.global_divides, multiplies->layers[0].scheme.weight.global_divides);
  EXPECT_NE(layer_class(divides->layers[0]), layer_class(multiplies->layers[0]));
}

TEST(ModelOpt, SideFileAlone) {
  const TableCheckpoint checkpoint(
      fp8_modelopt("a.fc", 64, 32),
      {{"config.json", R"({"architectures":["T"]})"},
       {"hf_quant_config.json",
        R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":"FP8","exclude_modules":["lm_head"]}})"}});
  const auto model = checkpoint.read();
  EXPECT_EQ(said(model, "a.fc"), "fp8_w8a8 64x32");
  EXPECT_EQ(model->quant_method, "modelopt");
  EXPECT_FALSE(model->layers[0].scheme.activation->dynamic);
}

TEST(Trap12, MethodByProducerWithoutTargetsAndWithKvSchemeAsText) {
  const std::string config =
      R"({"quantization_config":{"producer":{"name":"modelopt"},"quant_algo":"fp8","kv_cache_scheme":"FP8","ignore":["lm_head"],
    "config_groups":{"group_0":{"input_activations":{"num_bits":8},"weights":{"num_bits":8}}}}})";
  Table table = fp8_modelopt("a.fc", 64, 32);
  add(&table, bf16("lm_head", 64, 32));
  EXPECT_EQ(said(read_table(table, config), "a.fc"), "fp8_w8a8 64x32");
  EXPECT_EQ(said(read_table(table, config), "lm_head"), "bf16 64x32");
}

TEST(ModelOpt, ExclusionIsExactThenWildcardThenChildren) {
  const std::string config = modelopt_config(
      R"("quant_algo":"NVFP4","ignore":["lm_head","model.layers.6.*","*router","vision_tower","mtp*"])");
  Table table = bf16("lm_head", 64, 32);
  for (const std::string name :
       {"model.layers.6.self_attn.o_proj", "x.y.router", "vision_tower.a.b", "mtp.fc", "model.visual.blocks.0.qkv"}) {
    add(&table, bf16(name, 64, 32));
  }
  add(&table, nvfp4_modelopt("model.layers.61.self_attn.o_proj", 64, 32));
  const auto model = read_table(table, config);
  ASSERT_TRUE(model.ok()) << model.error().message();
  for (const LayerSpec& layer : model->layers)
    EXPECT_EQ(layer.scheme.quantized, layer.name == "model.layers.61.self_attn.o_proj") << layer.name;
}

TEST(Trap10, AStarWithoutADotAlsoHitsTheTens) {
  const std::string config = modelopt_config(R"("quant_algo":"NVFP4","ignore":["model.layers.1*"])");
  EXPECT_EQ(said(read_table(bf16("model.layers.17.fc", 64, 32), config), "model.layers.17.fc"), "bf16 64x32");
  EXPECT_TRUE(fails(read_table(nvfp4_modelopt("model.layers.17.fc", 64, 32), config), ErrorCode::damaged_checkpoint,
                    {"model.layers.17.fc"}));
  // An entry without a wildcard is a whole name: layer 17 is no child of layer 1.
  const std::string plain = modelopt_config(R"("quant_algo":"NVFP4","ignore":["model.layers.1"])");
  EXPECT_EQ(said(read_table(nvfp4_modelopt("model.layers.17.fc", 64, 32), plain), "model.layers.17.fc"),
            "nvfp4_w4a4 64x32");
}

TEST(ModelOpt, ExcludedNamesMayLackAPrefix) {
  const std::string config = modelopt_config(R"("quant_algo":"NVFP4","exclude_modules":["lm_head"])");
  EXPECT_EQ(said(read_table(bf16("language_model.lm_head", 64, 32), config), "language_model.lm_head"), "bf16 64x32");
}

TEST(ModelOpt, FloatWeightOfAQuantizedModuleIsAnError) {
  EXPECT_TRUE(fails(read_table(bf16("model.layers.0.mlp.up_proj", 64, 32), modelopt_config(R"("quant_algo":"NVFP4")")),
                    ErrorCode::damaged_checkpoint,
                    {"model.layers.0.mlp.up_proj", "BF16 weight without scales", "NVFP4"}));
  EXPECT_EQ(said(read_table(bf16("model.layers.0.mlp.gate", 64, 32), modelopt_config(R"("quant_algo":"NVFP4")")),
                 "model.layers.0.mlp.gate"),
            "bf16 64x32");
}

// ---- MIXED_PRECISION ----

TEST(Trap13, MixedPrecisionByNameAncestorFusedNameAndChild) {
  const std::string config = modelopt_config(R"("quant_algo":"MIXED_PRECISION","quantized_layers":{
    "m.layers.0.o_proj":{"quant_algo":"FP8"},"m.layers.0.mlp.experts":{"quant_algo":"NVFP4","group_size":16},
    "m.layers.0.qkv_proj":{"quant_algo":"FP8"},"m.layers.1.gate_proj":{"quant_algo":"W4A16_NVFP4"},"m.layers.1.up_proj":{"quant_algo":"W4A16_NVFP4"}})");
  Table table = fp8_modelopt("m.layers.0.o_proj", 64, 32);
  add(&table, nvfp4_modelopt("m.layers.0.mlp.experts.7.up_proj", 64, 32));
  add(&table, fp8_modelopt("m.layers.0.k_proj", 64, 32));
  add(&table, nvfp4_modelopt("m.layers.1.gate_up_proj", 64, 32, false));
  add(&table, bf16("m.layers.2.o_proj", 64, 32));
  const auto model = read_table(table, config);
  EXPECT_EQ(said(model, "m.layers.0.o_proj"), "fp8_w8a8 64x32");
  EXPECT_EQ(said(model, "m.layers.0.mlp.experts.7.up_proj"), "nvfp4_w4a4 64x32");
  EXPECT_EQ(said(model, "m.layers.0.k_proj"), "fp8_w8a8 64x32");
  EXPECT_EQ(said(model, "m.layers.1.gate_up_proj"), "nvfp4_w4a16 64x32");
  EXPECT_EQ(said(model, "m.layers.2.o_proj"), "bf16 64x32");
}

TEST(ModelOpt, NotListedMeansFloatAndScalesContradictThat) {
  const std::string config =
      modelopt_config(R"("quant_algo":"MIXED_PRECISION","quantized_layers":{"a":{"quant_algo":"FP8"}})");
  EXPECT_TRUE(fails(read_table(fp8_modelopt("b", 64, 32), config), ErrorCode::damaged_checkpoint,
                    {"b.weight", "not quantized"}));
}

TEST(ModelOpt, UnknownAlgorithmNamesLayerAndAlgorithm) {
  const std::string config = modelopt_config(
      R"("quant_algo":"MIXED_PRECISION","quantized_layers":{"layer6":{"quant_algo":"FP8"},"layer7":{"quant_algo":"xyz"}})");
  const Table table = fp8_modelopt("layer6", 64, 32);
  EXPECT_TRUE(fails(read_table(table, config), ErrorCode::unsupported_scheme, {"layer7", "xyz"}));
  const auto rest = read_table(table, config, true);
  EXPECT_EQ(said(rest, "layer6"), "fp8_w8a8 64x32");
  ASSERT_EQ(rest->unknown.size(), 1u);
  EXPECT_EQ(rest->unknown[0].name, "layer7");
  EXPECT_NE(rest->unknown[0].scheme.find("xyz"), std::string::npos);
}

// ---- tensors of every algorithm ----

struct AlgorithmCase {
  std::string algorithm;
  Table tensors;
  std::string said;
};
class ModelOptAlgorithm : public ::testing::TestWithParam<AlgorithmCase> {};
TEST_P(ModelOptAlgorithm, ReadsItsTensorsAndMissesEachOne) {
  const AlgorithmCase& param = GetParam();
  const std::string config = modelopt_config(R"("quant_algo":")" + param.algorithm + R"(","group_size":)" +
                                             (param.algorithm.find("AWQ") == std::string::npos ? "null" : "8"));
  EXPECT_EQ(said(read_table(param.tensors, config), "a"), param.said);
  for (size_t i = 0; i < param.tensors.size(); ++i) {
    if (param.tensors[i].name == "a.pre_quant_scale") continue;  // may be folded into the norm before
    Table table = param.tensors;
    table.erase(table.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_TRUE(fails(read_table(table, config), ErrorCode::damaged_checkpoint, {param.tensors[i].name}))
        << param.tensors[i].name;
    table = param.tensors;
    table[i].shape = {3, 5, 7, 9};
    EXPECT_TRUE(fails(read_table(table, config), ErrorCode::damaged_checkpoint, {"[3, 5, 7, 9]"}))
        << param.tensors[i].name;
  }
}
INSTANTIATE_TEST_SUITE_P(
    All, ModelOptAlgorithm,
    ::testing::Values(
        AlgorithmCase{"FP8", fp8_modelopt("a", 64, 32), "fp8_w8a8 64x32"},
        AlgorithmCase{"FP8_PER_CHANNEL_PER_TOKEN",
                      {{"a.weight", "F8_E4M3", {64, 32}}, {"a.weight_scale", "F32", {64}}},
                      "fp8_w8a8 64x32"},
        AlgorithmCase{"FP8_PB_WO",
                      {{"a.weight", "F8_E4M3", {320, 256}}, {"a.weight_scale", "F32", {3, 1, 2, 1}}},
                      "w8a16_fp8 320x256"},
        AlgorithmCase{"NVFP4", nvfp4_modelopt("a", 64, 32), "nvfp4_w4a4 64x32"},
        AlgorithmCase{"W4A16_NVFP4", nvfp4_modelopt("a", 64, 32, false), "nvfp4_w4a16 64x32"},
        AlgorithmCase{"W4A8_NVFP4_FP8", nvfp4_modelopt("a", 64, 32), "w4a8 64x32"},
        AlgorithmCase{"MXFP4", {{"a.weight", "U8", {64, 32}}, {"a.weight_scale", "U8", {64, 2}}}, "mxfp4 64x64"},
        AlgorithmCase{"MXFP8", {{"a.weight", "F8_E4M3", {64, 64}}, {"a.weight_scale", "U8", {64, 2}}}, "mxfp8 64x64"},
        AlgorithmCase{
            "INT4_AWQ",
            {{"a.weight", "U8", {32, 64}}, {"a.weight_scale", "F32", {64, 8}}, {"a.pre_quant_scale", "BF16", {64}}},
            "mixed_precision 64x64"},
        AlgorithmCase{"W4A8_AWQ",
                      {{"a.weight", "U8", {32, 64}}, {"a.weight_scale", "F32", {64, 8}}, {"a.input_scale", "F32", {}}},
                      "w4a8 64x64"},
        AlgorithmCase{
            "W8A16", {{"a.weight", "I8", {64, 32}}, {"a.weight_scale", "F32", {64}}}, "mixed_precision 64x32"},
        AlgorithmCase{"W8A8_SQ_PER_CHANNEL",
                      {{"a.weight", "I8", {64, 32}},
                       {"a.weight_scale", "F32", {64}},
                       {"a.pre_quant_scale", "BF16", {32}},
                       {"a.input_scale", "F32", {}}},
                      "int8_w8a8 64x32"}),
    [](const auto& param) { return param.param.algorithm; });

TEST(ModelOpt, WrongTypesInTheConfigAreErrors) {
  for (const std::string more :
       {R"("quant_algo":7)", R"("quant_algo":"FP8","ignore":{})", R"("quant_algo":"FP8","ignore":[3])",
        R"("quant_algo":"NVFP4","group_size":-16)", R"("quant_algo":"NVFP4","group_size":99999999999999)",
        R"("quant_algo":"MIXED_PRECISION")", R"("quant_algo":"MIXED_PRECISION","quantized_layers":{"a":"FP8"}))"}) {
    EXPECT_TRUE(fails(read_table({}, modelopt_config(more)), ErrorCode::damaged_checkpoint, {})) << more;
  }
}

TEST(ModelOpt, TransposedExpertStacksAreRefusedByShape) {
  const Table table = {{"m.experts.gate_up_proj", "U8", {4, 16, 64}},
                       {"m.experts.gate_up_proj_weight_scale", "F8_E4M3", {4, 2, 64}},
                       {"m.experts.gate_up_proj_weight_scale_2", "F32", {}},
                       {"m.experts.gate_up_proj_input_scale", "F32", {}}};
  EXPECT_TRUE(fails(read_table(table, modelopt_config(R"("quant_algo":"NVFP4")")), ErrorCode::unsupported_scheme,
                    {"m.experts.gate_up_proj", "[experts, K, N]"}));
}

}  // namespace
}  // namespace gearshift::test
