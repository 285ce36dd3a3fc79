// One layer in memory is what `quantize` writes for the same weights, and is read by the same door.
#include <gtest/gtest.h>

#include <cmath>

#include "fixture.h"

namespace gearshift {
namespace {

class LayerInMemory : public QuantizeTest {
 protected:
  // The only layer's tensors by their names behind the layer's.
  static std::map<std::string, std::vector<uint8_t>> tensors_of(const Checkpoint& checkpoint,
                                                                const std::string& layer) {
    std::map<std::string, std::vector<uint8_t>> tensors;
    for (const TensorInfo& tensor : checkpoint.tensors()) {
      const ByteView bytes = *checkpoint.bytes(tensor);
      EXPECT_TRUE(tensor.name.starts_with(layer + "."));
      tensors[tensor.name.substr(layer.size() + 1) + " " + std::string(name(tensor.dtype)) + to_string(tensor.shape)] =
          {bytes.begin(), bytes.end()};
    }
    return tensors;
  }
  std::vector<uint8_t> floats(size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random_);
    std::vector<uint8_t> bytes(4 * count);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
};

TEST_F(LayerInMemory, HasTheBytesThatQuantizeWrites) {
  const std::vector<uint8_t> weight = floats(24 * 256), bias = floats(24);
  const std::string folder = testing::TempDir() + "/layer_in_memory_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_safetensors(folder + "/model.safetensors", {{"layers.0.fc.weight", DType::f32, {24, 256}, weight},
                                                                {"layers.0.fc.bias", DType::f32, {24}, bias}})
                  .ok());
  for (const std::string scheme : {"NVFP4", "NVFP4A16", "FP8", "FP8_DYNAMIC", "FP8_BLOCK", "INT8", "W4A16",
                                   "W4A16_ASYM", "MXFP4", "MXFP8", "UNQUANTIZED"}) {
    const auto made =
        quantize_layer({{"", DType::f32, {24, 256}, weight}, TensorInMemory{"", DType::f32, {24}, bias}, scheme, 0});
    ASSERT_TRUE(made.ok()) << scheme << ": " << made.error().message();
    QuantizeRequest request;
    request.model = folder;
    request.out = folder + "/" + scheme;
    request.rules = {{"", scheme}};
    const auto written = quantize(request);
    ASSERT_TRUE(written.ok()) << scheme << ": " << written.error().message();
    EXPECT_EQ(tensors_of(made->checkpoint, "linear"), tensors_of(*Checkpoint::open(request.out), "layers.0.fc"))
        << scheme;
    if (!written->layers.empty()) {
      EXPECT_EQ(made->layer.relative_error, written->layers[0].relative_error);
      EXPECT_EQ(made->layer.bytes_after, written->layers[0].bytes_after);
    }
    // And reads as the same scheme.
    const auto read = read_layers(made->checkpoint), file = read_layers(*Checkpoint::open(request.out));
    ASSERT_TRUE(read.ok()) << scheme << ": " << read.error().message();
    ASSERT_EQ(read->layers.size(), 1U);
    EXPECT_EQ(read->layers[0].scheme, file->layers[0].scheme) << scheme;
    EXPECT_EQ(read->dtype, DType::f32);

    // The tensors alone, with the codes under their plain name and narrow types as integers, are that layer again.
    std::vector<TensorInMemory> loose;
    for (const TensorInfo& tensor : made->checkpoint.tensors()) {
      std::string suffix = tensor.name.substr(std::string("linear.").size());
      if (suffix == "weight_packed") suffix = "weight";
      const bool narrow = bits(tensor.dtype) == 8 && tensor.dtype != DType::i8;
      loose.push_back({suffix, narrow ? DType::u8 : tensor.dtype, tensor.shape, *made->checkpoint.bytes(tensor)});
    }
    const auto again = layer_of_tensors(scheme, loose, DType::f32);
    ASSERT_TRUE(again.ok()) << scheme << ": " << again.error().message();
    EXPECT_EQ(tensors_of(*again, "linear"), tensors_of(made->checkpoint, "linear")) << scheme;
    EXPECT_EQ(again->side_file("config.json"), made->checkpoint.side_file("config.json")) << scheme;
  }
  std::filesystem::remove_all(folder);
}

TEST_F(LayerInMemory, KnownActivationsMakeTheirScale) {
  const std::vector<uint8_t> weight = floats(16 * 64);
  const auto scale_for = [&](double amax) {
    const auto made = quantize_layer({{"", DType::f32, {16, 64}, weight}, std::nullopt, "FP8", amax});
    const ByteView bytes = *made->checkpoint.bytes(*made->checkpoint.find("linear.input_scale"));
    float scale = 0;
    std::memcpy(&scale, bytes.data(), sizeof scale);
    return scale;
  };
  EXPECT_FLOAT_EQ(scale_for(0), 1);  // 448, the largest e4m3
  EXPECT_FLOAT_EQ(scale_for(4.48), 0.01F);
}

TEST_F(LayerInMemory, Refusals) {
  std::vector<uint8_t> weight = floats(16 * 64);
  const auto refusal = [&](const QuantizeLayerRequest& request) {
    const auto made = quantize_layer(request);
    return made.ok() ? ErrorInfo{} : made.error();
  };
  const TensorInMemory whole{"", DType::f32, {16, 64}, weight};
  EXPECT_NE(refusal({whole, std::nullopt, "INT9", 0}).found.find("INT9"), std::string::npos);
  EXPECT_NE(refusal({whole, std::nullopt, "W4A16", 0}).found.find("64"), std::string::npos);
  EXPECT_EQ(refusal({whole, std::nullopt, "INT8", -1}).subject, "input_amax");
  EXPECT_EQ(refusal({whole, std::nullopt, "INT8", NAN}).subject, "input_amax");
  EXPECT_EQ(refusal({{"", DType::f32, {1024}, weight}, std::nullopt, "INT8", 0}).subject, "weight");
  EXPECT_NE(refusal({{"", DType::i32, {16, 64}, weight}, std::nullopt, "INT8", 0}).found.find("I32"),
            std::string::npos);
  EXPECT_EQ(refusal({{"", DType::f32, {16, 65}, weight}, std::nullopt, "INT8", 0}).code, ErrorCode::usage);
  EXPECT_NE(refusal({whole, TensorInMemory{"", DType::f32, {8}, ByteView(weight).first(32)}, "INT8", 0}).code,
            ErrorCode::runtime);
  const float nan = NAN;
  std::memcpy(weight.data() + 4 * (3 * 64 + 5), &nan, sizeof nan);
  const ErrorInfo error = refusal({whole, std::nullopt, "INT8", 0});
  EXPECT_EQ(error.code, ErrorCode::damaged_checkpoint);
  EXPECT_NE(error.message().find("[3, 5]"), std::string::npos) << error.message();
  EXPECT_EQ(layer_of_tensors("INT9", {}, DType::bf16).error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace gearshift
