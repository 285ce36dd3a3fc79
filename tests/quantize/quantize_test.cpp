#include "gearshift/quantize.h"

#include <algorithm>
#include <cmath>

#include "quantize/fixture.h"

namespace gearshift {
namespace {

using Rules = std::vector<QuantizeRule>;

bool mentions(const std::vector<std::string>& notes, const std::string& words) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& n) { return n.find(words) != std::string::npos; });
}
const LayerSpec* find_layer(const ModelLayers& model, const std::string& name) {
  const auto at =
      std::find_if(model.layers.begin(), model.layers.end(), [&](const LayerSpec& l) { return l.name == name; });
  return at == model.layers.end() ? nullptr : &*at;
}

// ---- read back through the rooms before this one ----

struct Expected {
  const char* preset;
  Format weight;
  std::optional<Format> activation;
};
class ReadBack : public QuantizeTest, public testing::WithParamInterface<Expected> {};
TEST_P(ReadBack, LayersHaveTheScheme) {
  const auto model = write_model({random_matrix("model.layers.0.mlp.down_proj.weight", 24, 256)});
  ASSERT_TRUE(quantize(request(model, {{"", GetParam().preset}})).ok());
  const auto layers = read_layers(Checkpoint::open(out()).value());
  ASSERT_TRUE(layers.ok()) << layers.error().message();
  const LayerSpec* layer = find_layer(*layers, "model.layers.0.mlp.down_proj");
  ASSERT_NE(layer, nullptr);
  EXPECT_EQ(layer->scheme.weight.format, GetParam().weight);
  EXPECT_EQ(layer->n, 24);
  EXPECT_EQ(layer->k, 256);
  EXPECT_EQ(layer->scheme.activation.has_value(), GetParam().activation.has_value());
  if (layer->scheme.activation && GetParam().activation) {
    EXPECT_EQ(layer->scheme.activation->format, *GetParam().activation);
  }
}
INSTANTIATE_TEST_SUITE_P(Presets, ReadBack,
                         testing::Values(Expected{"NVFP4", Format::e2m1, Format::e2m1},
                                         Expected{"nvfp4a16", Format::e2m1, std::nullopt},
                                         Expected{"Fp8_Dynamic", Format::e4m3, Format::e4m3}),
                         [](const auto& test) { return std::string(test.param.preset); });

class Rounding : public QuantizeTest, public testing::WithParamInterface<std::pair<const char*, double>> {};
TEST_P(Rounding, ErrorOfNormalWeightsIsThatOfTheFormat) {
  const auto model =
      write_model({random_matrix("a.proj.weight", 40, 256), random_matrix("b.proj.weight", 8, 256, 1e-3f)});
  const auto report = quantize(request(model, {{"*", GetParam().first}}));
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->layers.size(), 2u);
  for (const QuantizedLayer& layer : report->layers) {
    EXPECT_GT(layer.relative_error, GetParam().second / 4) << layer.name;
    EXPECT_LT(layer.relative_error, GetParam().second) << layer.name;
    EXPECT_GE(layer.worst_row, layer.relative_error) << layer.name;
    EXPECT_NEAR(layer.cosine, 1 - layer.relative_error * layer.relative_error / 2,
                layer.relative_error * layer.relative_error)
        << layer.name;
    EXPECT_EQ(layer.bytes_before, static_cast<uint64_t>(layer.n * layer.k * 4));
    EXPECT_LT(layer.bytes_after, layer.bytes_before / 3);
  }
}
// Half the spacing of the codes over the spread of a normal distribution, generously.
INSTANTIATE_TEST_SUITE_P(Presets, Rounding,
                         testing::Values(std::pair{"NVFP4", 0.14}, std::pair{"FP8_DYNAMIC", 0.035},
                                         std::pair{"FP8", 0.035}, std::pair{"FP8_BLOCK", 0.035},
                                         std::pair{"INT8", 0.012}, std::pair{"W4A16", 0.14},
                                         std::pair{"W4A16_ASYM", 0.14}, std::pair{"MXFP4", 0.17},
                                         std::pair{"MXFP8", 0.05}),
                         [](const auto& test) { return std::string(test.param.first); });

// ---- rules ----

TEST_F(QuantizeTest, MixByPattern) {
  std::vector<Source> sources;
  for (const char* layer : {"encoder.layer.0.", "encoder.layer.1."}) {
    for (const char* part : {"attention.self.query", "attention.self.key", "attention.self.value",
                             "attention.output.dense", "intermediate.dense", "output.dense"}) {
      sources.push_back(random_matrix(std::string(layer) + part + ".weight", 32, 32));
    }
  }
  sources.push_back(random_matrix("pooler.dense.weight", 32, 32));
  sources.push_back(random_matrix("embeddings.word_embeddings.weight", 64, 32));
  const auto model =
      write_model(sources, R"({"architectures":["BertModel"],"layer_norm_eps":1e-12,"rope_theta":10000.0})");
  const auto report =
      quantize(request(model, {{"encoder.layer.*.dense", "NVFP4"}, {"encoder.layer.*.attention.*", "FP8_DYNAMIC"}}));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->layers.size(), 12u);
  EXPECT_TRUE(mentions(report->notes, "1 of 13 linear layers stay float"));

  const std::string config = read_text(out() + "/config.json");
  EXPECT_NE(config.find(R"("format": "mixed-precision")"), std::string::npos);
  EXPECT_NE(config.find(R"("re:encoder\\.layer\\..*\\.attention\\..*")"), std::string::npos);
  EXPECT_NE(config.find(R"("rope_theta":10000.0)"), std::string::npos);

  const auto read = read_layers(Checkpoint::open(out()).value());
  ASSERT_TRUE(read.ok()) << read.error().message();
  ASSERT_EQ(read->layers.size(), 13u);
  for (const LayerSpec& layer : read->layers) {
    const Format wanted = layer.name == "pooler.dense"                        ? Format::float_
                          : layer.name.find("attention") != std::string::npos ? Format::e4m3
                                                                              : Format::e2m1;
    EXPECT_EQ(layer.scheme.weight.format, wanted) << layer.name;
  }
}

TEST_F(QuantizeTest, LaterOfEqualRulesWinsAndUnquantizedTakesOut) {
  const auto model = write_model({random_matrix("a.x_proj.weight", 16, 16), random_matrix("b.x_proj.weight", 16, 16)});
  const auto report =
      quantize(request(model, {{"*", "FP8"}, {"a.*", "NVFP4"}, {"a.*", "FP8_DYNAMIC"}, {"b.x_proj", "unquantized"}}));
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->layers.size(), 1u);
  EXPECT_EQ(report->layers[0].name, "a.x_proj");
  EXPECT_EQ(report->layers[0].scheme, "FP8_DYNAMIC");
  EXPECT_NE(read_text(out() + "/config.json").find("\"b.x_proj\""), std::string::npos);
}

TEST_F(QuantizeTest, HeadsAndRoutersStayFloatUnlessNamed) {
  const auto model =
      write_model({random_matrix("lm_head.weight", 32, 32), random_matrix("model.layers.0.mlp.gate.weight", 8, 32),
                   random_matrix("model.layers.0.mlp.up_proj.weight", 32, 32)});
  const auto all = quantize(request(model, {{"", "NVFP4A16"}}));
  ASSERT_TRUE(all.ok()) << all.error().message();
  ASSERT_EQ(all->layers.size(), 1u);
  EXPECT_TRUE(mentions(all->notes, "lm_head stays float"));
  EXPECT_TRUE(mentions(all->notes, "mlp.gate stays float"));
  std::filesystem::remove_all(out());
  const auto named = quantize(request(model, {{"", "NVFP4A16"}, {"lm_head", "NVFP4A16"}}));
  ASSERT_TRUE(named.ok()) << named.error().message();
  EXPECT_EQ(named->layers.size(), 2u);
}

TEST_F(QuantizeTest, UnquantizedAloneIsACopy) {
  const std::string config = R"({"architectures": ["LlamaForCausalLM"], "rms_norm_eps": 1e-05})";
  const auto model = write_model({random_matrix("a.proj.weight", 3, 5)}, config);
  ASSERT_TRUE(quantize(request(model, {{"", "UNQUANTIZED"}})).ok());
  EXPECT_EQ(read_text(out() + "/config.json"), config);
  EXPECT_EQ(read_text(out() + "/model.safetensors"), read_text(model + "/model.safetensors"));
}

// ---- scales of fused parts and of activations ----

TEST_F(QuantizeTest, FusedPartsShareTheirGlobalScales) {
  auto q = random_matrix("model.layers.0.self_attn.q_proj.weight", 16, 32),
       k = random_matrix("model.layers.0.self_attn.k_proj.weight", 16, 32),
       v = random_matrix("model.layers.0.self_attn.v_proj.weight", 16, 32),
       o = random_matrix("model.layers.0.self_attn.o_proj.weight", 16, 32);
  set(k, 7, -64);
  const auto model = write_model({q, k, v, o});
  auto x = random_matrix("model.layers.0.self_attn.k_proj", 4, 32);
  set(x, 9, 256);
  const auto calibration = (directory_ / "x.safetensors").string();
  ASSERT_TRUE(write_safetensors(calibration, {{x.name, x.dtype, x.shape, x.bytes}}).ok());
  auto r = request(model, {{"", "NVFP4"}});
  r.calibration = calibration;
  const auto report = quantize(r);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_TRUE(mentions(report->notes, "static activation scale of 1 layer (model.layers.0.self_attn.o_proj)"));
  const auto written = Checkpoint::open(out()).value();
  for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
    const std::string name = std::string("model.layers.0.self_attn.") + part;
    EXPECT_EQ(scalar(written, name + ".weight_global_scale"), 42) << part;   // 2688 / 64
    EXPECT_EQ(scalar(written, name + ".input_global_scale"), 10.5) << part;  // 2688 / 256
  }
  EXPECT_GT(scalar(written, "model.layers.0.self_attn.o_proj.weight_global_scale"), 300);
  EXPECT_EQ(scalar(written, "model.layers.0.self_attn.o_proj.input_global_scale"), 6);
}

TEST_F(QuantizeTest, CalibrationOfAFusedRowServesItsParts) {
  const auto model =
      write_model({random_matrix("m.0.mlp.gate_proj.weight", 16, 32), random_matrix("m.0.mlp.up_proj.weight", 16, 32)});
  auto x = random_matrix("m.0.mlp.gate_up_proj", 1, 32);
  set(x, 0, -128);
  const auto calibration = (directory_ / "x.safetensors").string();
  ASSERT_TRUE(write_safetensors(calibration, {{x.name, x.dtype, x.shape, x.bytes}}).ok());
  auto r = request(model, {{"", "NVFP4"}});
  r.calibration = calibration;
  ASSERT_TRUE(quantize(r).ok());
  EXPECT_EQ(scalar(Checkpoint::open(out()).value(), "m.0.mlp.up_proj.input_global_scale"), 21);
}

TEST_F(QuantizeTest, CalibrationThatDoesNotFitIsRefused) {
  const auto model = write_model({random_matrix("a.proj.weight", 16, 32)});
  const auto calibration = (directory_ / "x.safetensors").string();
  auto r = request(model, {{"", "NVFP4"}});
  r.calibration = calibration;
  auto wrong = random_matrix("a.proj", 2, 16);
  ASSERT_TRUE(write_safetensors(calibration, {{wrong.name, wrong.dtype, wrong.shape, wrong.bytes}}).ok());
  EXPECT_EQ(quantize(r).error().code, ErrorCode::usage);
  auto other = random_matrix("b.proj", 2, 32);
  ASSERT_TRUE(write_safetensors(calibration, {{other.name, other.dtype, other.shape, other.bytes}}).ok());
  EXPECT_EQ(quantize(r).error().code, ErrorCode::usage);
  auto nan = random_matrix("a.proj", 2, 32);
  set(nan, 33, NAN);
  ASSERT_TRUE(write_safetensors(calibration, {{nan.name, nan.dtype, nan.shape, nan.bytes}}).ok());
  EXPECT_EQ(quantize(r).error().code, ErrorCode::damaged_checkpoint);
}

// ---- refusals leave nothing behind ----

TEST_F(QuantizeTest, NotANumberIsNamedByItsPlace) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    auto first = random_matrix("a.proj.weight", 16, 32), second = random_matrix("b.proj.weight", 16, 32);
    set(second, 2 * 32 + 3, bad);
    set(second, 5 * 32 + 1, bad);
    const auto model = write_model({first, second});
    const auto result = quantize(request(model, {{"", "FP8_DYNAMIC"}}));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::damaged_checkpoint);
    EXPECT_NE(result.error().message().find("b.proj.weight"), std::string::npos) << result.error().message();
    EXPECT_NE(result.error().message().find("[2, 3]"), std::string::npos) << result.error().message();
    EXPECT_EQ(entries(), 1u);  // the model
  }
}

TEST_F(QuantizeTest, WrongUse) {
  const auto model =
      write_model({random_matrix("a.up_proj.weight", 16, 40), random_matrix("a.down_proj.weight", 16, 32)});
  const struct {
    Rules rules;
    std::vector<std::string> words;
  } cases[] = {
      {{}, {"--scheme"}},
      {{{"", "NVFP5"}}, {"NVFP5", "NVFP4", "FP8_DYNAMIC", "did you mean"}},
      {{{"", "w4afp8"}}, {"not written yet"}},
      {{{"a.up_prj", "NVFP4"}}, {"a.up_prj", "no linear layer matches", "a.up_proj"}},
      {{{"*", "FP8"}, {"nothing*", "NVFP4"}}, {"nothing*"}},
      {{{"*", "NVFP4"}}, {"a.up_proj", "K = 40", "multiple of 16", "a.up_proj=UNQUANTIZED"}},
      {{{"*", "W4A16"}}, {"multiple of 128"}},
  };
  for (const auto& c : cases) {
    const auto result = quantize(request(model, c.rules));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::usage) << result.error().message();
    for (const std::string& word : c.words)
      EXPECT_NE(result.error().message().find(word), std::string::npos) << result.error().message();
    EXPECT_EQ(entries(), 1u);
  }
  auto other = request(model, {{"", "FP8"}});
  other.container = "tarball";
  EXPECT_EQ(quantize(other).error().code, ErrorCode::usage);
}

TEST_F(QuantizeTest, OutMustBeFree) {
  const auto model = write_model({random_matrix("a.proj.weight", 16, 32)});
  std::filesystem::create_directories(out());
  EXPECT_TRUE(quantize(request(model, {{"", "FP8"}})).ok()) << "an empty directory is free";
  const std::string before = read_text(out() + "/model.safetensors");
  EXPECT_EQ(quantize(request(model, {{"", "NVFP4"}})).error().code, ErrorCode::usage);
  EXPECT_EQ(read_text(out() + "/model.safetensors"), before);
  auto r = request(model, {{"", "NVFP4"}});
  r.out = model;
  EXPECT_EQ(quantize(r).error().code, ErrorCode::usage);
  r.out = model + "/config.json";
  EXPECT_EQ(quantize(r).error().code, ErrorCode::usage);
  r.out = (directory_ / "deep" / "er" / "").string();
  EXPECT_TRUE(quantize(r).ok()) << "parents are made, a trailing slash means nothing";
  EXPECT_TRUE(std::filesystem::exists(directory_ / "deep" / "er" / "model.safetensors"));
}

TEST_F(QuantizeTest, QuantizedModelsAreNotQuantizedAgain) {
  const auto model = write_model({random_matrix("a.proj.weight", 16, 32)});
  ASSERT_TRUE(quantize(request(model, {{"", "FP8_DYNAMIC"}})).ok());
  auto again = request(out(), {{"", "NVFP4"}});
  again.out = (directory_ / "again").string();
  const auto result = quantize(again);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::usage) << result.error().message();
}

// A step that throws stands for whatever ends the work in the middle: the output is not there, nor is anything beside
// it.
TEST_F(QuantizeTest, FailureInTheMiddleLeavesNothing) {
  const auto model = write_model({random_matrix("a.proj.weight", 16, 32), random_matrix("b.proj.weight", 16, 32)});
  auto r = request(model, {{"", "FP8_DYNAMIC"}});
  bool seen_staging = false;
  r.progress = [&](size_t done, size_t total) {
    EXPECT_EQ(total, 4u);
    EXPECT_FALSE(std::filesystem::exists(out()));
    seen_staging = entries() == 2;
    if (done == 3) throw std::bad_alloc();
  };
  EXPECT_THROW((void)quantize(r), std::bad_alloc);
  EXPECT_TRUE(seen_staging);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(QuantizeTest, LinkToNothingIsNotFree) {
  const auto model = write_model({random_matrix("a.proj.weight", 16, 32)});
  std::filesystem::create_directory_symlink(directory_ / "nowhere", out());
  const auto result = quantize(request(model, {{"", "FP8"}}));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::usage);
  EXPECT_EQ(entries(), 2u);
}

TEST_F(QuantizeTest, ParentsMadeForAFailureGoWithIt) {
  auto bad = random_matrix("a.proj.weight", 16, 32);
  set(bad, 0, NAN);
  auto r = request(write_model({bad}), {{"", "FP8"}});
  r.out = (directory_ / "deep" / "er" / "out").string();
  EXPECT_FALSE(quantize(r).ok());
  EXPECT_EQ(entries(), 1u);
}

// As when two processes write the same output and the other one is done first.
TEST_F(QuantizeTest, OutputTakenMeanwhileIsKept) {
  auto r = request(write_model({random_matrix("a.proj.weight", 16, 32)}), {{"", "FP8"}});
  r.progress = [&](size_t done, size_t) {
    if (done != 1) return;
    std::filesystem::create_directories(out());
    std::ofstream(out() + "/theirs") << "x";
  };
  const auto result = quantize(r);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::runtime);
  EXPECT_EQ(read_text(out() + "/theirs"), "x");
  EXPECT_EQ(entries(), 2u) << "the model and what the other one wrote";
}

// ---- what else is written ----

TEST_F(QuantizeTest, SideFilesComeAlongAndWeightsDoNot) {
  const auto model = write_model({random_matrix("a.proj.weight", 16, 32)});
  for (const char* name : {"tokenizer.json", "generation_config.json", "merges.txt", "pytorch_model.bin", ".hidden",
                           "model.safetensors.index.json.bak"}) {
    std::ofstream(std::filesystem::path(model) / name) << name;
  }
  ASSERT_TRUE(quantize(request(model, {{"", "FP8"}})).ok());
  EXPECT_EQ(read_text(out() + "/tokenizer.json"), "tokenizer.json");
  EXPECT_EQ(read_text(out() + "/generation_config.json"), "generation_config.json");
  EXPECT_EQ(read_text(out() + "/merges.txt"), "merges.txt");
  EXPECT_FALSE(std::filesystem::exists(out() + "/pytorch_model.bin"));
  EXPECT_FALSE(std::filesystem::exists(out() + "/.hidden"));
}

TEST_F(QuantizeTest, FloatTensorsAreCopiedAsTheyAre) {
  auto norm = random_matrix("model.norm.weight", 1, 32);
  norm.shape = {32};
  auto bias = random_matrix("a.proj.bias", 1, 16);
  bias.shape = {16};
  auto embedding = random_matrix("model.embed_tokens.weight", 20, 32);
  const auto model = write_model({random_matrix("a.proj.weight", 16, 32), norm, bias, embedding});
  ASSERT_TRUE(quantize(request(model, {{"", "NVFP4"}})).ok());
  const auto written = Checkpoint::open(out()).value();
  for (const Source* source : {&norm, &bias, &embedding}) {
    const TensorInfo* tensor = written.find(source->name);
    ASSERT_NE(tensor, nullptr) << source->name;
    EXPECT_EQ(tensor->shape, source->shape);
    const ByteView bytes = written.bytes(*tensor).value();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), source->bytes.begin(), source->bytes.end())) << source->name;
  }
  EXPECT_EQ(written.find("a.proj.weight"), nullptr);
}

}  // namespace
}  // namespace gearshift
