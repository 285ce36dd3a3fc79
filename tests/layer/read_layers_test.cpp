// Which modules are linear layers, tied heads, refusals, and the words of layer.h.
#include <algorithm>

#include "layer/table.h"

namespace gearshift::test {
namespace {

TEST(ReadLayers, EmbeddingsNormsAndConvolutionsAreSkipped) {
  const Table table = {{"m.embed_tokens.weight", "BF16", {100, 32}},
                       {"m.wte.weight", "BF16", {100, 32}},
                       {"m.wpe.weight", "BF16", {100, 32}},
                       {"m.conv1d.weight", "BF16", {32, 1, 4}},
                       {"m.patch_embed.proj.weight", "BF16", {8, 3, 2, 2}},
                       {"m.input_layernorm.weight", "BF16", {32}},
                       {"m.q_norm.weight", "BF16", {4, 32}},
                       {"m.pos_embed", "BF16", {10, 32}},
                       {"m.embedding_projection.weight", "BF16", {32, 16}},
                       {"m.mlp.gate.weight", "F32", {8, 32}},
                       {"m.mlp.gate.e_score_correction_bias", "F32", {8}},
                       {"m.A_log", "F32", {32}},
                       {"m.self_attn.k_proj.k_scale", "F32", {1}},
                       {"m.self_attn.k_proj.weight", "F16", {8, 32}},
                       {"m.rotary_emb.inv_freq", "F32", {16}}};
  const auto model = read_table(table, "{}");
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(names(model->layers), (Names{"m.embedding_projection", "m.mlp.gate", "m.self_attn.k_proj"}));
  EXPECT_EQ(model->skipped.size(), 7u);
  EXPECT_NE(std::find(model->skipped.begin(), model->skipped.end(), "m.conv1d"), model->skipped.end());
  EXPECT_NE(std::find(model->skipped.begin(), model->skipped.end(), "m.pos_embed"), model->skipped.end());
}

TEST(ReadLayers, NaturalOrder) {
  Table table = bf16("l.10.fc", 8, 8);
  add(&table, bf16("l.2.fc", 8, 8));
  add(&table, bf16("l.1.fc", 8, 8));
  EXPECT_EQ(names(read_table(table, "{}")->layers), (Names{"l.1.fc", "l.2.fc", "l.10.fc"}));
}

TEST(Case51, TiedHeadUsesTheEmbedding) {
  const Table table = {{"model.embed_tokens.weight", "BF16", {248, 32}},
                       {"model.layers.0.fc.weight", "BF16", {32, 32}}};
  for (const std::string config :
       {R"({"tie_word_embeddings":true})", R"({"text_config":{"tie_word_embeddings":true}})"}) {
    const auto model = read_table(table, config);
    EXPECT_EQ(said(model, "lm_head"), "bf16 248x32");
    EXPECT_EQ(find(model->layers, "lm_head")->modules[0].tensors[0].name, "model.embed_tokens.weight");
  }
  EXPECT_EQ(said(read_table(table, R"({"tie_word_embeddings":false})"), "lm_head"), "none");
  EXPECT_EQ(said(read_table(table, "{}"), "lm_head"), "none");
}

TEST(Case51, StoredHeadIsNotTiedAgain) {
  Table table = bf16("model.embed_tokens", 100, 32);
  add(&table, bf16("lm_head", 100, 32));
  const auto model = read_table(table, R"({"tie_word_embeddings":true})");
  EXPECT_EQ(names(model->layers), (Names{"lm_head"}));
  EXPECT_EQ(model->layers[0].modules[0].tensors[0].name, "lm_head.weight");
}

TEST(Case51, TiedHeadUnderARuleForLinearLayersStaysFloat) {
  Table table = bf16("language_model.model.embed_tokens", 100, 32);
  add(&table, fp8_channel("language_model.model.layers.0.fc", 32, 32));
  const auto model = read_table(table, ct_config(R"("g":)" + fp8_group(R"(["Linear"])"), "[]", "float-quantized",
                                                 R"(,"tie_word_embeddings":true)"));
  EXPECT_EQ(said(model, "language_model.lm_head"), "bf16 100x32");
}

TEST(Case51, QuantizedHeadHasItsOwnScales) {
  EXPECT_EQ(said(read_table(nvfp4_ct("lm_head", 256, 64), ct_config(R"("g":)" + nvfp4_group(R"(["re:.*lm_head"])"))),
                 "lm_head"),
            "nvfp4_w4a4 256x64");
}

TEST(ReadLayers, ActivationDtypeFromConfigElseFromWeights) {
  const Table table = {{"a.fc.weight", "F16", {8, 8}}};
  EXPECT_EQ(read_table(table, R"({"torch_dtype":"bfloat16"})")->dtype, DType::bf16);
  EXPECT_EQ(read_table(table, R"({"text_config":{"dtype":"float32"}})")->dtype, DType::f32);
  EXPECT_EQ(read_table(table, "{}")->dtype, DType::f16);
  EXPECT_EQ(read_table({}, "{}")->dtype, DType::bf16);
}

TEST(ReadLayers, QuantizedTensorsWithoutAConfigAreNotGuessed) {
  EXPECT_TRUE(
      fails(read_table(fp8_channel("a.fc", 8, 8), "{}"), ErrorCode::damaged_checkpoint, {"a.fc.weight", "F8_E4M3"}));
}

TEST(ReadLayers, BiasMustFit) {
  Table table = bf16("a.fc", 8, 16);
  table.push_back({"a.fc.bias", "BF16", {8}});
  EXPECT_TRUE(read_table(table, "{}")->layers.at(0).bias);
  table.back().shape = {16};
  EXPECT_TRUE(
      fails(read_table(table, "{}"), ErrorCode::damaged_checkpoint, {"a.fc.bias", "found BF16 [16], wanted BF16 [8]"}));
}

// ---- refusals ----

TEST(Refused, ByMethodWithNameAndAdvice) {
  for (const std::string method : {"bitsandbytes", "torchao", "hqq", "exl2", "exl3", "gguf", "fp_quant", "experts_int8",
                                   "aqlm", "eetq", "higgs", "quanto", "spqr", "vptq", "bitnet", "marlin"}) {
    EXPECT_TRUE(fails(read_table({}, R"({"quantization_config":{"quant_method":")" + method + R"("}})"),
                      ErrorCode::unsupported_scheme,
                      {"config.json: quantization_config", method + " (", "wanted a scheme"}))
        << method;
  }
  EXPECT_TRUE(fails(read_table({}, R"({"quantization_config":{"quant_method":"Brand-New"}})"),
                    ErrorCode::unsupported_scheme, {"brand-new"}));
  EXPECT_TRUE(fails(read_table({}, R"({"quantization_config":{"_load_in_4bit":true}})"), ErrorCode::unsupported_scheme,
                    {"bitsandbytes"}));
}

TEST(Refused, ByTensorNames) {
  const std::vector<std::pair<Table, std::string>> cases = {
      {{{"a.weight", "U8", {64, 1}},
        {"a.weight.absmax", "F32", {2}},
        {"a.weight.quant_state.bitsandbytes__nf4", "U8", {9}}},
       "bitsandbytes"},
      {{{"a.weight", "I8", {8, 8}}, {"a.SCB", "F32", {8}}}, "bitsandbytes"},
      {{{"a.trellis", "I16", {2, 2, 48}}, {"a.suh", "F16", {32}}, {"a.svh", "F16", {32}}}, "exl3"},
      {{{"a.q_weight", "I32", {8, 8}}, {"a.q_invperm", "I16", {8}}}, "exl2"},
      {{{"a.W_q", "U8", {8, 8}}, {"a.scale", "F16", {8}}, {"a.zero", "F16", {8}}}, "hqq"},
  };
  for (const auto& [table, format] : cases)
    EXPECT_TRUE(fails(read_table(table, "{}"), ErrorCode::unsupported_scheme, {"a", format})) << format;
}

TEST(Refused, TheRestIsReadWhenAsked) {
  Table table = {{"a.fc.weight", "U8", {64, 1}}, {"a.fc.weight.absmax", "U8", {2}}};
  add(&table, bf16("lm_head", 64, 32));
  const auto model = read_table(table, R"({"quantization_config":{"quant_method":"bitsandbytes"}})", true);
  EXPECT_EQ(said(model, "lm_head"), "bf16 64x32");
  ASSERT_EQ(model->unknown.size(), 1u);
  EXPECT_EQ(model->unknown[0].name, "a.fc");
  EXPECT_NE(model->unknown[0].scheme.find("bitsandbytes"), std::string::npos);
}

TEST(ReadLayers, ConfigsThatAreNoObjectsAreErrors) {
  for (const std::string config : {"[]", "7", "{", R"({"a":NaN})"}) {
    EXPECT_TRUE(fails(read_table(bf16("a.fc", 8, 8), config), ErrorCode::damaged_checkpoint, {"config.json"}))
        << config;
  }
  // Values of odd types elsewhere do not matter.
  EXPECT_TRUE(
      read_table(
          bf16("a.fc", 8, 8),
          R"({"architectures":{"a":1},"num_hidden_layers":1e300,"hidden_size":"x","tie_word_embeddings":3,"quantization_config":[]})")
          .ok());
}

// ---- words ----

TEST(Words, FamiliesAndTheirNamesAreInverse) {
  for (Family family : all_families()) EXPECT_EQ(parse_family(name(family)), family);
  EXPECT_EQ(all_families().size(), 12u);
  EXPECT_FALSE(parse_family("nvfp4"));
  EXPECT_EQ(name(Format::float_), "float");
  EXPECT_EQ(name(Format::uint8), "uint8");
  EXPECT_EQ(bits(Format::int5), 5);
  EXPECT_EQ(bits(Format::e3m2), 6);
  EXPECT_EQ(name(Granularity::token_group), "token_group");
}

TEST(Words, FamilyTable) {
  const auto family = [](Format format, DType scale, std::optional<Format> activation,
                         Granularity granularity = Granularity::token) {
    Scheme scheme;
    scheme.quantized = true;
    scheme.weight.format = format;
    scheme.weight.scale = scale;
    scheme.weight.grouping = {Grouping::Kind::group, 1, 32};
    if (activation) {
      scheme.activation = ActivationScheme{};
      scheme.activation->format = *activation;
      scheme.activation->granularity = granularity;
    }
    return family_of(scheme);
  };
  EXPECT_EQ(family(Format::e4m3, DType::f32, {}), Family::w8a16_fp8);
  EXPECT_EQ(family(Format::e4m3, DType::f32, Format::e4m3), Family::fp8_w8a8);
  EXPECT_EQ(family(Format::e4m3, DType::f32, Format::e4m3, Granularity::token_group), Family::fp8_block_w8a8);
  EXPECT_EQ(family(Format::e4m3, DType::f8_e8m0, {}), Family::mxfp8);
  EXPECT_EQ(family(Format::e2m3, DType::f8_e8m0, {}), Family::mxfp6);
  EXPECT_EQ(family(Format::e2m1, DType::f8_e8m0, Format::e2m1), Family::mxfp4);
  EXPECT_EQ(family(Format::e2m1, DType::f8_e4m3, {}), Family::nvfp4_w4a16);
  EXPECT_EQ(family(Format::e2m1, DType::f8_e4m3, Format::e2m1), Family::nvfp4_w4a4);
  EXPECT_EQ(family(Format::e2m1, DType::f8_e4m3, Format::e4m3), Family::w4a8);
  EXPECT_EQ(family(Format::int8, DType::f32, Format::int8), Family::int8_w8a8);
  EXPECT_EQ(family(Format::int8, DType::f32, Format::e4m3), Family::w4a8);
  EXPECT_EQ(family(Format::int4, DType::f32, Format::int8), Family::w4a8);
  EXPECT_EQ(family(Format::uint4, DType::f32, {}), Family::mixed_precision);
}

}  // namespace
}  // namespace gearshift::test
