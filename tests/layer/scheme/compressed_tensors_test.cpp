// compressed-tensors: which group a module belongs to (formats.md 2.5) and what its tensors must look like (2.2).
#include "layer/table.h"

namespace gearshift::test {
namespace {

const std::string kLinear = R"(["Linear"])";

TEST(CompressedTensors, Nvfp4KeepsDirectionAndStoredScale) {
  const auto model =
      read_table(nvfp4_ct("model.layers.0.mlp.up_proj", 64, 32), ct_config(R"("g":)" + nvfp4_group(kLinear)));
  ASSERT_TRUE(model.ok()) << model.error().message();
  const LayerSpec& layer = model->layers.at(0);
  EXPECT_EQ(layer.family, Family::nvfp4_w4a4);
  EXPECT_TRUE(layer.scheme.weight.global_scale && layer.scheme.weight.global_divides);
  ASSERT_TRUE(layer.scheme.activation);
  EXPECT_TRUE(layer.scheme.activation->dynamic && layer.scheme.activation->stored_scale &&
              layer.scheme.activation->stored_multiplies);
  EXPECT_EQ(layer.scheme.activation->group, 16);
  EXPECT_EQ(layer.weight_bytes, 64u * 16 + 64 * 2);
}

TEST(CompressedTensors, WeightOnlyIsAValueOfItsOwn) {
  const std::string config = ct_config(R"("g":)" + nvfp4_group(kLinear, false));
  EXPECT_EQ(said(read_table(nvfp4_ct("a.up_proj", 64, 32, false), config), "a.up_proj"), "nvfp4_w4a16 64x32");
  EXPECT_TRUE(fails(read_table(nvfp4_ct("a.up_proj", 64, 32, true), config), ErrorCode::damaged_checkpoint,
                    {"a.up_proj.input_global_scale", "found F32 [1]", "no such tensor"}));
}

TEST(Case48, MissingActivationScaleNamesTheTensor) {
  EXPECT_TRUE(fails(read_table(nvfp4_ct("a.up_proj", 64, 32, false), ct_config(R"("g":)" + nvfp4_group(kLinear))),
                    ErrorCode::damaged_checkpoint,
                    {"a.up_proj.input_global_scale", "found no such tensor", "wanted F32"}));
}

TEST(CompressedTensors, EveryPromisedTensorIsChecked) {
  struct Damage {
    size_t row;
    Row now;
    std::string found;
  };
  const Damage damages[] = {
      {0, {"a.up_proj.weight_packed", "I8", {64, 16}}, "found I8 [64, 16]"},
      {1, {"a.up_proj.weight_scale", "F8_E4M3", {64, 3}}, "found F8_E4M3 [64, 3], wanted F8_E4M3 [64, 2]"},
      {1, {"a.up_proj.weight_scale", "F8_E4M3", {63, 2}}, "found F8_E4M3 [63, 2], wanted F8_E4M3 [64, 2]"},
      {1, {"a.up_proj.weight_scale", "BF16", {64, 2}}, "found BF16 [64, 2]"},
      {2, {"a.up_proj.weight_global_scale", "F32", {64}}, "found F32 [64]"},
      {2, {"a.up_proj.weight_scale_2", "F32", {1}}, "found no such tensor"},
  };
  for (const Damage& damage : damages) {
    Table table = nvfp4_ct("a.up_proj", 64, 32);
    table[damage.row] = damage.now;
    EXPECT_TRUE(fails(read_table(table, ct_config(R"("g":)" + nvfp4_group(kLinear))), ErrorCode::damaged_checkpoint,
                      {"a.up_proj.", damage.found}));
  }
}

TEST(CompressedTensors, ScalesLeftWithoutAWeightAreReported) {
  EXPECT_TRUE(
      fails(read_table({{"a.up_proj.weight_scale", "F8_E4M3", {64, 2}}}, ct_config(R"("g":)" + nvfp4_group(kLinear))),
            ErrorCode::damaged_checkpoint, {"a.up_proj.weight_packed", "no such tensor"}));
}

TEST(CompressedTensors, ChannelScalesWithOrWithoutTheSecondDimension) {
  for (const Shape& shape : {Shape{64, 1}, Shape{64}}) {
    const Table table = {{"a.up_proj.weight", "F8_E4M3", {64, 32}}, {"a.up_proj.weight_scale", "F16", shape}};
    const auto model = read_table(table, ct_config(R"("g":)" + fp8_group(kLinear)));
    ASSERT_EQ(said(model, "a.up_proj"), "fp8_w8a8 64x32");
    EXPECT_EQ(model->layers[0].scheme.weight.scale, DType::f16);
  }
}

TEST(Trap9, RegularExpressionsAreAnchoredAtTheStartOnly) {
  Table table = bf16("model.layers.0.mlp.up_proj", 64, 32);
  add(&table, bf16("model.html.up_proj", 64, 32));
  add(&table, fp8_channel("model.layers.0.moe.up_proj", 64, 32));
  const auto model = read_table(table, ct_config(R"("g":)" + fp8_group(kLinear), R"(["re:.*mlp*"])"));
  EXPECT_EQ(said(model, "model.layers.0.mlp.up_proj"), "bf16 64x32");
  EXPECT_EQ(said(model, "model.html.up_proj"), "bf16 64x32");
  EXPECT_EQ(said(model, "model.layers.0.moe.up_proj"), "fp8_w8a8 64x32");
  const auto anchored =
      read_table(fp8_channel("model.x.mtp.fc", 64, 32), ct_config(R"("g":)" + fp8_group(kLinear), R"(["re:^mtp.*"])"));
  EXPECT_EQ(said(anchored, "model.x.mtp.fc"), "fp8_w8a8 64x32");
}

TEST(Trap11, TheFirstMatchingTargetInConfigOrderWins) {
  Table table = fp8_channel("model.layers.5.mlp.up_proj", 64, 32);
  add(&table, nvfp4_ct("model.layers.4.mlp.up_proj", 64, 32));
  const std::string groups = R"("z":)" + fp8_group(R"(["re:.*layers\\.5\\.mlp.*"])") + R"(,"a":)" +
                             nvfp4_group(R"(["re:.*mlp\\.(gate|up)_proj$"])");
  const auto model = read_table(table, ct_config(groups));
  EXPECT_EQ(said(model, "model.layers.5.mlp.up_proj"), "fp8_w8a8 64x32");
  EXPECT_EQ(said(model, "model.layers.4.mlp.up_proj"), "nvfp4_w4a4 64x32");
}

TEST(CompressedTensors, NamesBeatClasses) {
  const std::string groups = R"("a":)" + nvfp4_group(kLinear) + R"(,"b":)" + fp8_group(R"(["lm_head"])");
  Table table = fp8_channel("lm_head", 64, 32);
  add(&table, nvfp4_ct("model.layers.0.mlp.up_proj", 64, 32));
  const auto model = read_table(table, ct_config(groups));
  EXPECT_EQ(said(model, "lm_head"), "fp8_w8a8 64x32");
  EXPECT_EQ(said(model, "model.layers.0.mlp.up_proj"), "nvfp4_w4a4 64x32");
}

TEST(CompressedTensors, IgnoredModulesMustNotHaveScales) {
  EXPECT_TRUE(
      fails(read_table(fp8_channel("lm_head", 64, 32), ct_config(R"("g":)" + fp8_group(kLinear), R"(["lm_head"])")),
            ErrorCode::damaged_checkpoint, {"lm_head.weight", "F8_E4M3", "not quantized"}));
}

TEST(CompressedTensors, UntargetedModulesStayFloat) {
  const std::string config = ct_config(R"("g":)" + fp8_group(R"(["re:.*self_attn.*"])"));
  EXPECT_EQ(said(read_table(bf16("model.visual.blocks.0.attn.qkv", 64, 32), config), "model.visual.blocks.0.attn.qkv"),
            "bf16 64x32");
  EXPECT_TRUE(fails(read_table(fp8_channel("model.visual.qkv", 64, 32), config), ErrorCode::damaged_checkpoint,
                    {"model.visual.qkv"}));
}

TEST(Trap15, LinearReachesTheHeadButNotRoutersAndDraftLayers) {
  const std::string config =
      ct_config(R"("g":)" + fp8_group(kLinear), "[]", "float-quantized", R"(,"num_hidden_layers":2)");
  EXPECT_EQ(said(read_table(fp8_channel("lm_head", 64, 32), config), "lm_head"), "fp8_w8a8 64x32");
  for (const std::string router : {"model.layers.0.mlp.gate", "model.layers.0.mlp.shared_expert_gate",
                                   "model.layers.0.mlp.router", "mtp.layers.0.mlp.up_proj", "model.layers.2.eh_proj"}) {
    EXPECT_EQ(said(read_table(bf16(router, 64, 32), config), router), "bf16 64x32");
  }
  EXPECT_TRUE(fails(read_table(bf16("model.layers.1.mlp.up_proj", 64, 32), config), ErrorCode::damaged_checkpoint,
                    {"model.layers.1.mlp.up_proj", "BF16 weight without scales", "config_groups.g"}));
}

TEST(CompressedTensors, PrefixesMayDifferAsASecondAttempt) {
  const std::string config =
      ct_config(R"("g":)" + fp8_group(kLinear), R"(["lm_head","model.layers.0.self_attn.o_proj"])");
  Table table = bf16("language_model.lm_head", 64, 32);
  add(&table, bf16("model.language_model.layers.0.self_attn.o_proj", 64, 32));
  const auto model = read_table(table, config);
  EXPECT_EQ(said(model, "language_model.lm_head"), "bf16 64x32");
  EXPECT_EQ(said(model, "model.language_model.layers.0.self_attn.o_proj"), "bf16 64x32");
}

TEST(CompressedTensors, StoredFusedNamesFollowTheirShards) {
  const std::string config = ct_config(R"("g":)" + fp8_group(R"(["re:.*(q|k|v)_proj$"])"));
  EXPECT_EQ(said(read_table(fp8_channel("a.qkv_proj", 96, 32), config), "a.qkv_proj"), "fp8_w8a8 96x32");
  const std::string linear = ct_config(R"("g":)" + fp8_group(kLinear), R"(["a.q_proj","a.k_proj","a.v_proj"])");
  EXPECT_EQ(said(read_table(bf16("a.qkv_proj", 96, 32), linear), "a.qkv_proj"), "bf16 96x32");
  const std::string half = ct_config(R"("g":)" + fp8_group(kLinear), R"(["a.q_proj"])");
  EXPECT_TRUE(fails(read_table(bf16("a.qkv_proj", 96, 32), half), ErrorCode::damaged_checkpoint,
                    {"a.qkv_proj", "1 of its 3 parts"}));
}

TEST(Trap25, ADictionaryInTextConfigCoversTheLanguageModel) {
  const std::string config =
      R"({"text_config":{"quantization_config":{"quant_method":"compressed-tensors","format":"float-quantized",
    "config_groups":{"g":)" +
      fp8_group(kLinear) + R"(},"ignore":["lm_head"]}}})";
  Table table = fp8_channel("language_model.model.layers.0.mlp.up_proj", 64, 32);
  add(&table, bf16("language_model.lm_head", 64, 32));
  add(&table, bf16("vision_tower.blocks.0.fc0", 64, 32));
  const auto model = read_table(table, config);
  EXPECT_EQ(said(model, "language_model.model.layers.0.mlp.up_proj"), "fp8_w8a8 64x32");
  EXPECT_EQ(said(model, "language_model.lm_head"), "bf16 64x32");
  EXPECT_EQ(said(model, "vision_tower.blocks.0.fc0"), "bf16 64x32");
}

TEST(Trap25, CompressionConfigIsTheOldName) {
  const std::string config =
      R"({"compression_config":{"format":"float-quantized","config_groups":{"g":)" + fp8_group(kLinear) + "}}}";
  EXPECT_EQ(said(read_table(fp8_channel("a.up_proj", 64, 32), config), "a.up_proj"), "fp8_w8a8 64x32");
}

TEST(Trap28, OnlyAListMakesALabelAPreset) {
  EXPECT_EQ(
      said(read_table(nvfp4_ct("a.up_proj", 64, 32), ct_config(R"("NVFP4A16":)" + nvfp4_group(kLinear))), "a.up_proj"),
      "nvfp4_w4a4 64x32");
  EXPECT_EQ(said(read_table(nvfp4_ct("a.up_proj", 64, 32, false),
                            ct_config(R"("NVFP4A16":["Linear"])", "[]", "nvfp4-pack-quantized")),
                 "a.up_proj"),
            "nvfp4_w4a16 64x32");
  EXPECT_TRUE(fails(read_table({}, ct_config(R"("W3A3":["Linear"])")), ErrorCode::unsupported_scheme, {"W3A3"}));
}

TEST(Trap29, TheGroupsOwnFormatCounts) {
  EXPECT_EQ(said(read_table(nvfp4_ct("a.up_proj", 64, 32),
                            ct_config(R"("g":)" + nvfp4_group(kLinear), "null", "mixed-precision")),
                 "a.up_proj"),
            "nvfp4_w4a4 64x32");
}

TEST(CompressedTensors, GroupsWithoutWeightsDescribeAttention) {
  const std::string groups =
      R"("kv":{"targets":["re:.*self_attn$"],"weights":null,"input_activations":{"num_bits":8,"type":"float"}},"g":)" +
      fp8_group(kLinear);
  Table table = fp8_channel("model.layers.0.self_attn.q_proj", 64, 32);
  table.push_back({"model.layers.0.self_attn.k_scale", "F32", {1}});
  EXPECT_EQ(said(read_table(table, ct_config(groups)), "model.layers.0.self_attn.q_proj"), "fp8_w8a8 64x32");
}

// ---- packed integers ----

std::string int_config(int bits, const std::string& rest, const std::string& activations = "null") {
  return ct_config(R"("g":{"targets":["Linear"],"weights":{"num_bits":)" + std::to_string(bits) + R"(,"type":"int",)" +
                       rest + R"(},"input_activations":)" + activations + "}",
                   "[]", "pack-quantized");
}

TEST(CompressedTensors, PackedIntegers) {
  const auto model =
      read_table(int_packed("a.up_proj", 64, 256, 4, 32), int_config(4, R"("strategy":"group","group_size":32)"));
  ASSERT_EQ(said(model, "a.up_proj"), "mixed_precision 64x256");
  EXPECT_EQ(model->layers[0].scheme.weight.format, Format::int4);
  EXPECT_EQ(model->layers[0].scheme.weight.storage, Storage::dense_bits);
}

TEST(Case35, TheLastGroupMayBeShort) {
  EXPECT_EQ(said(read_table(int_packed("a.up_proj", 1152, 4304, 4, 32),
                            int_config(4, R"("strategy":"group","group_size":32)")),
                 "a.up_proj"),
            "mixed_precision 1152x4304");
}

TEST(Case49, ScaleTableOneGroupShort) {
  Table table = int_packed("a.up_proj", 64, 256, 4, 32);
  table[1].shape = {64, 7};
  EXPECT_TRUE(fails(read_table(table, int_config(4, R"("strategy":"group","group_size":32)")),
                    ErrorCode::damaged_checkpoint, {"a.up_proj.weight"}));
}

TEST(Case49, HostileNumbersInTheConfig) {
  const Table table = int_packed("a.up_proj", 64, 256, 4, 32);
  for (const std::string group : {"0", "-2", "99999999999999", "1e300", "\"32\"", "[32]", "2.5"}) {
    EXPECT_TRUE(fails(read_table(table, int_config(4, R"("strategy":"group","group_size":)" + group)),
                      ErrorCode::damaged_checkpoint, {"group_size"}))
        << group;
  }
  for (const int bits : {0, -1, 17, 2147483647}) {
    EXPECT_TRUE(fails(read_table(table, int_config(bits, R"("strategy":"channel")")), ErrorCode::damaged_checkpoint,
                      {"num_bits"}))
        << bits;
  }
}

TEST(CompressedTensors, BitsThatAreNoIntegerAreRefusedByName) {
  const std::string config = ct_config(R"("g":{"targets":["Linear"],"weights":{"num_bits":{"a":4}}})");
  EXPECT_TRUE(fails(read_table({}, config), ErrorCode::unsupported_scheme, {"num_bits"}));
}

TEST(CompressedTensors, OddWidthsTellOldFromNewPacking) {
  for (const int bits : {3, 5, 6, 7}) {
    const std::string config = int_config(bits, R"("strategy":"group","group_size":128)");
    Table table = int_packed("a.up_proj", 64, 4096, bits, 128);
    auto model = read_table(table, config);
    ASSERT_EQ(said(model, "a.up_proj"), "mixed_precision 64x4096");
    EXPECT_EQ(model->layers[0].scheme.weight.storage, Storage::dense_bits) << bits;
    const int64_t per_word = 32 / bits;
    table[0].shape = {64, (4096 + per_word - 1) / per_word};
    model = read_table(table, config);
    ASSERT_EQ(said(model, "a.up_proj"), "mixed_precision 64x4096");
    EXPECT_EQ(model->layers[0].scheme.weight.storage, Storage::word_bits) << bits;
  }
}

TEST(CompressedTensors, ZeroPointsArePackedAlongRows) {
  Table table = int_packed("a.up_proj", 64, 256, 4, 32);
  const std::string config = int_config(4, R"("strategy":"group","group_size":32,"symmetric":false)");
  EXPECT_TRUE(fails(read_table(table, config), ErrorCode::damaged_checkpoint,
                    {"a.up_proj.weight_zero_point", "no such tensor"}));
  table.push_back({"a.up_proj.weight_zero_point", "I32", {8, 8}});
  const auto model = read_table(table, config);
  ASSERT_EQ(said(model, "a.up_proj"), "mixed_precision 64x256");
  EXPECT_FALSE(model->layers[0].scheme.weight.symmetric);
  table.back().shape = {64, 8};
  EXPECT_TRUE(
      fails(read_table(table, config), ErrorCode::damaged_checkpoint, {"found I32 [64, 8], wanted I32 [8, 8]"}));
}

TEST(CompressedTensors, ActOrderStoresAnIndex) {
  Table table = int_packed("a.up_proj", 64, 256, 4, 32);
  table.push_back({"a.up_proj.weight_g_idx", "I32", {256}});
  const auto model = read_table(table, int_config(4, R"("strategy":"group","group_size":32,"actorder":"group")"));
  ASSERT_EQ(said(model, "a.up_proj"), "mixed_precision 64x256");
  EXPECT_TRUE(model->layers[0].scheme.weight.act_order);
  EXPECT_TRUE(fails(read_table(table, int_config(4, R"("strategy":"group","group_size":32,"actorder":"static")")),
                    ErrorCode::damaged_checkpoint, {"a.up_proj.weight_g_idx"}));
}

// ---- the other formats ----

TEST(CompressedTensors, Int8StaticAsymmetric) {
  const std::string config = ct_config(
      R"("g":{"targets":["Linear"],"weights":{"num_bits":8,"type":"int","strategy":"channel"},"input_activations":{"num_bits":8,"type":"int","strategy":"tensor","symmetric":false}})",
      "[]", "int-quantized");
  Table table = {{"a.fc.weight", "I8", {64, 32}},
                 {"a.fc.weight_scale", "BF16", {64, 1}},
                 {"a.fc.input_scale", "F32", {1}},
                 {"a.fc.input_zero_point", "I8", {1}}};
  const auto model = read_table(table, config);
  ASSERT_EQ(said(model, "a.fc"), "int8_w8a8 64x32");
  EXPECT_FALSE(model->layers[0].scheme.activation->symmetric);
  EXPECT_FALSE(model->layers[0].scheme.activation->dynamic);
  table.pop_back();
  EXPECT_TRUE(fails(read_table(table, config), ErrorCode::damaged_checkpoint, {"a.fc.input_zero_point"}));
}

TEST(Case33, PartialFp8Blocks) {
  const std::string config = ct_config(R"("FP8_BLOCK":["Linear"])", "[]", "float-quantized");
  for (const auto& [n, rows] : {std::pair<int64_t, int64_t>{576, 5}, {2112, 17}}) {
    const Table table = {{"a.fc.weight", "F8_E4M3", {n, 1536}}, {"a.fc.weight_scale", "F32", {rows, 12}}};
    EXPECT_EQ(said(read_table(table, config), "a.fc"), "fp8_block_w8a8 " + std::to_string(n) + "x1536");
  }
}

TEST(CompressedTensors, ExponentScalesAreReadAsBytesOrAsTheirOwnType) {
  for (const std::string dtype : {"U8", "F8_E8M0"}) {
    Table table = {{"a.fc.weight_packed", "U8", {64, 32}}, {"a.fc.weight_scale", dtype, {64, 2}}};
    auto model = read_table(table, ct_config(R"("MXFP4":["Linear"])", "[]", "mxfp4-pack-quantized"));
    ASSERT_EQ(said(model, "a.fc"), "mxfp4 64x64");
    EXPECT_EQ(model->layers[0].scheme.weight.scale, DType::f8_e8m0);
    table = {{"a.fc.weight", "F8_E4M3", {64, 64}}, {"a.fc.weight_scale", dtype, {64, 2}}};
    model = read_table(table, ct_config(R"("MXFP8A16":["Linear"])", "[]", "mxfp8-quantized"));
    ASSERT_EQ(said(model, "a.fc"), "mxfp8 64x64");
    EXPECT_FALSE(model->layers[0].scheme.activation);
  }
}

TEST(CompressedTensors, ExpertStacks) {
  const std::string config = ct_config(R"("W8A8":["Linear"])", "[]", "int-quantized");
  const Table table = {{"model.layers.0.moe.up_proj.weight", "I8", {4, 64, 32}},
                       {"model.layers.0.moe.up_proj.weight_scale", "BF16", {4, 64, 1}}};
  const auto model = read_table(table, config);
  ASSERT_EQ(said(model, "model.layers.0.moe.up_proj"), "int8_w8a8 64x32");
  EXPECT_EQ(model->layers[0].kind, LayerKind::experts);
  EXPECT_EQ(model->layers[0].experts, 4);
  EXPECT_TRUE(model->layers[0].stacked);
}

TEST(CompressedTensors, RefusesWhatItCannotDecode) {
  EXPECT_TRUE(fails(read_table({}, ct_config("", "[]", "marlin-24")), ErrorCode::unsupported_scheme, {"marlin-24"}));
  EXPECT_TRUE(fails(read_table({}, ct_config("", "[]", "sparse-24-bitmask")), ErrorCode::unsupported_scheme,
                    {"sparse-24-bitmask"}));
  EXPECT_TRUE(fails(
      read_table(
          {}, R"({"quantization_config":{"quant_method":"compressed-tensors","quantization_status":"calibration"}})"),
      ErrorCode::unsupported_scheme, {"calibration"}));
  EXPECT_TRUE(fails(
      read_table(
          {},
          R"({"quantization_config":{"quant_method":"compressed-tensors","transform_config":{"config_groups":{"u":{}}}}})"),
      ErrorCode::unsupported_scheme, {"Hadamard"}));
  EXPECT_EQ(
      said(
          read_table(
              fp8_channel("a.fc", 64, 32),
              R"({"quantization_config":{"quant_method":"compressed_tensors","transform_config":{},"sparsity_config":{},"config_groups":{"g":)" +
                  fp8_group(kLinear) + "}}}"),
          "a.fc"),
      "fp8_w8a8 64x32");
}

TEST(CompressedTensors, WrongTypesInTheConfigAreErrors) {
  const Table table = fp8_channel("a.fc", 64, 32);
  for (const std::string groups :
       {R"("g":7)", R"("g":{"targets":"Linear","weights":{}})", R"("g":{"targets":[1],"weights":{}})",
        R"("g":{"targets":["Linear"],"weights":[]})", R"("g":{"targets":["Linear"],"weights":{"symmetric":1}})",
        R"("g":{"targets":["Linear"],"weights":{"strategy":"rowwise"}})",
        R"("g":{"targets":["Linear"],"weights":{"type":"float","strategy":"block","block_structure":[0,128]}})",
        R"("g":{"targets":["re:("],"weights":{"type":"float"}})"}) {
    EXPECT_TRUE(fails(read_table(table, ct_config(groups)), ErrorCode::damaged_checkpoint, {"config_groups"}))
        << groups;
  }
  EXPECT_TRUE(fails(read_table(table, ct_config(R"("g":)" + fp8_group(kLinear), R"("lm_head")")),
                    ErrorCode::damaged_checkpoint, {"ignore"}));
}

}  // namespace
}  // namespace gearshift::test
