// The ModelOpt container, against the definition of its formats written out here.
#include <cmath>

#include "format/e2m1.h"
#include "format/e4m3.h"
#include "quantize/fixture.h"

namespace gearshift {
namespace {

class ModelOptTest : public QuantizeTest {
 protected:
  QuantizeRequest modelopt(const std::string& model, std::vector<QuantizeRule> rules) const {
    QuantizeRequest r = request(model, std::move(rules));
    r.container = "modelopt";
    return r;
  }
  static const uint8_t* bytes(const Checkpoint& checkpoint, const std::string& name, DType dtype, const Shape& shape) {
    const TensorInfo* tensor = checkpoint.find(name);
    EXPECT_NE(tensor, nullptr) << name;
    if (tensor == nullptr) return nullptr;
    EXPECT_EQ(tensor->dtype, dtype) << name;
    EXPECT_EQ(tensor->shape, shape) << name;
    return checkpoint.bytes(*tensor).value().data();
  }
};

float element(const Source& source, int64_t i) {
  float value;
  std::memcpy(&value, source.bytes.data() + i * 4, 4);
  return value;
}

// Every code is the nearest e2m1 number to w / (scale * weight_scale_2), every scale the e4m3 number of amax16 / (6 *
// weight_scale_2) within [2^-9, 448], 1 for a block of zeros.
TEST_F(ModelOptTest, Nvfp4CodesAndScalesFollowTheDefinition) {
  const int64_t n = 24, k = 64;
  auto w = random_matrix("model.layers.0.mlp.down_proj.weight", n, k);
  for (int64_t i = 0; i < 16; ++i) set(w, i, 0);                               // a block of zeros
  for (int64_t i = 16; i < 32; ++i) set(w, i, 1e-9f * static_cast<float>(i));  // below the smallest scale
  set(w, 40, -64);
  const auto model = write_model({w});
  const auto report = quantize(modelopt(model, {{"", "nvfp4"}}));
  ASSERT_TRUE(report.ok()) << report.error().message();
  const auto written = Checkpoint::open(out()).value();
  const std::string name = "model.layers.0.mlp.down_proj";
  const uint8_t* codes = bytes(written, name + ".weight", DType::u8, {n, k / 2});
  const uint8_t* scales = bytes(written, name + ".weight_scale", DType::f8_e4m3, {n, k / 16});
  ASSERT_NE(codes, nullptr);
  ASSERT_NE(scales, nullptr);
  ASSERT_NE(bytes(written, name + ".weight_scale_2", DType::f32, {}), nullptr);
  ASSERT_NE(bytes(written, name + ".input_scale", DType::f32, {}), nullptr);
  EXPECT_EQ(written.tensors().size(), 4u);
  const float scale_2 = scalar(written, name + ".weight_scale_2");
  EXPECT_EQ(scale_2, 64.0f / 2688);
  EXPECT_EQ(scalar(written, name + ".input_scale"), 448.0f / 2688) << "the stated default";
  EXPECT_EQ(format::decode_e4m3(scales[0]), 1);
  EXPECT_EQ(format::decode_e4m3(scales[1]), 0x1p-9f);

  double error = 0, norm = 0;
  for (int64_t i = 0; i < n * k; ++i) {
    const float value = element(w, i), scale = format::decode_e4m3(scales[i / 16]);
    const uint8_t code = i % 2 == 0 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
    const float step = scale * scale_2, target = value / step;
    float nearest = INFINITY;
    for (int c = 0; c < 16; ++c) {
      const float distance = std::fabs(format::decode_e2m1(static_cast<uint8_t>(c)) - target);
      nearest = std::min(nearest, distance);
    }
    EXPECT_EQ(std::fabs(format::decode_e2m1(code) - target), nearest) << i;
    const double back = static_cast<double>(format::decode_e2m1(code)) * scale * scale_2;
    error += (back - value) * (back - value);
    norm += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(report->layers.at(0).relative_error, std::sqrt(error / norm), 1e-6);
}

TEST_F(ModelOptTest, FusedPartsShareTheirScales) {
  auto gate = random_matrix("m.0.mlp.gate_proj.weight", 16, 32), up = random_matrix("m.0.mlp.up_proj.weight", 16, 32);
  set(up, 5, 56);
  const auto model = write_model({gate, up});
  for (const char* preset : {"NVFP4A16", "FP8"}) {
    std::filesystem::remove_all(out());
    ASSERT_TRUE(quantize(modelopt(model, {{"", preset}})).ok());
    const auto written = Checkpoint::open(out()).value();
    const bool fp8 = std::string(preset) == "FP8";
    for (const char* part : {"m.0.mlp.gate_proj", "m.0.mlp.up_proj"}) {
      EXPECT_EQ(scalar(written, part + std::string(fp8 ? ".weight_scale" : ".weight_scale_2")),
                fp8 ? 56.0f / 448 : 56.0f / 2688)
          << preset << " " << part;
      EXPECT_EQ(written.find(part + std::string(".input_scale")) != nullptr, fp8);
    }
  }
}

TEST_F(ModelOptTest, ReadBackFromEitherConfig) {
  const std::vector<QuantizeRule> mixed = {{"*", "NVFP4"}, {"*q_proj", "FP8"}, {"*v_proj", "NVFP4A16"}};
  const struct {
    std::vector<QuantizeRule> rules;
    const char* algorithm;
  } cases[] = {{{{"", "NVFP4"}}, "\"NVFP4\""}, {{{"", "FP8"}}, "\"FP8\""}, {mixed, "\"MIXED_PRECISION\""}};
  const auto model = write_model(
      {random_matrix("model.layers.0.self_attn.q_proj.weight", 16, 32),
       random_matrix("model.layers.0.self_attn.v_proj.weight", 16, 32),
       random_matrix("model.layers.0.mlp.down_proj.weight", 16, 32), random_matrix("lm_head.weight", 8, 32)},
      R"({"architectures":["LlamaForCausalLM"],"rms_norm_eps":1e-05})");
  for (const auto& c : cases) {
    std::filesystem::remove_all(out());
    const auto report = quantize(modelopt(model, c.rules));
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_EQ(report->layers.size(), 3u);
    const std::string hf = read_text(out() + "/hf_quant_config.json");
    EXPECT_NE(hf.find(std::string("\"quant_algo\": ") + c.algorithm), std::string::npos) << hf;
    const auto read = read_layers(Checkpoint::open(out()).value());
    ASSERT_TRUE(read.ok()) << read.error().message();
    // As old exports are: the file of its own alone.
    std::ofstream(out() + "/config.json") << R"({"architectures":["LlamaForCausalLM"]})";
    const auto alone = read_layers(Checkpoint::open(out()).value());
    ASSERT_TRUE(alone.ok()) << alone.error().message();
    ASSERT_EQ(read->layers.size(), 4u);
    ASSERT_EQ(alone->layers.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      const LayerSpec& layer = read->layers[i];
      const bool head = layer.name == "lm_head";
      const bool fp8 = c.algorithm == std::string("\"FP8\"") || (c.rules.size() > 1 && layer.name.ends_with("q_proj"));
      EXPECT_EQ(layer.scheme.weight.format, head ? Format::float_ : fp8 ? Format::e4m3 : Format::e2m1) << layer.name;
      const bool weight_only = head || (c.rules.size() > 1 && layer.name.ends_with("v_proj"));
      EXPECT_EQ(layer.scheme.activation.has_value(), !weight_only) << layer.name;
      EXPECT_EQ(alone->layers[i].scheme.weight.format, layer.scheme.weight.format) << layer.name;
      EXPECT_EQ(alone->layers[i].scheme.activation.has_value(), layer.scheme.activation.has_value()) << layer.name;
    }
  }
}

TEST_F(ModelOptTest, OtherSchemesAreRefusedByName) {
  const auto model = write_model({random_matrix("a.proj.weight", 16, 128)});
  for (const char* preset : {"FP8_DYNAMIC", "FP8_BLOCK", "INT8", "w4a16", "MXFP4", "MXFP8"}) {
    const auto result = quantize(modelopt(model, {{"", preset}}));
    ASSERT_FALSE(result.ok()) << preset;
    EXPECT_EQ(result.error().code, ErrorCode::usage);
    EXPECT_NE(result.error().message().find("NVFP4, NVFP4A16, FP8"), std::string::npos) << result.error().message();
    EXPECT_NE(result.error().message().find("ModelOpt container"), std::string::npos) << result.error().message();
    EXPECT_EQ(entries(), 1u);
  }
}

TEST_F(ModelOptTest, WeightsOfZerosHaveScalesThatReadersTake) {
  auto zero = random_matrix("a.proj.weight", 16, 32);
  std::fill(zero.bytes.begin(), zero.bytes.end(), uint8_t{0});
  const auto model = write_model({zero});
  for (const char* preset : {"NVFP4", "FP8"}) {
    std::filesystem::remove_all(out());
    const auto report = quantize(modelopt(model, {{"", preset}}));
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_EQ(report->layers.at(0).relative_error, 0);
    const std::string suffix = preset == std::string("FP8") ? ".weight_scale" : ".weight_scale_2";
    EXPECT_EQ(scalar(Checkpoint::open(out()).value(), "a.proj" + suffix), 1);
  }
}

}  // namespace
}  // namespace gearshift
