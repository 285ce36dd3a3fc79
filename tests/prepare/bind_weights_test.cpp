#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>

#include "gearshift/prepare.h"
#include "prepare/bad_value.h"

namespace gearshift {
namespace {

std::vector<uint8_t> bytes_of(const std::vector<float>& values) {
  std::vector<uint8_t> bytes(values.size() * 4);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
std::vector<uint8_t> bytes_of(const std::vector<int32_t>& values) {
  std::vector<uint8_t> bytes(values.size() * 4);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

struct Tensor {
  TensorRole role;
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<uint8_t> bytes;
};

// One layer of hand-written tensors, written to a file and opened again.
class BindWeights : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "/bind_" + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
            ".safetensors";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // N = 4, K = 32: two groups a row.
  static std::vector<Tensor> nvfp4() {
    return {
        {TensorRole::weight, "mlp.down_proj.weight_packed", DType::u8, {4, 16}, std::vector<uint8_t>(64, 0x21)},
        {TensorRole::weight_scale, "mlp.down_proj.weight_scale", DType::f8_e4m3, {4, 2}, std::vector<uint8_t>(8, 0x38)},
        {TensorRole::weight_global_scale,
         "mlp.down_proj.weight_global_scale",
         DType::f32,
         {1},
         bytes_of(std::vector<float>{640})},
        {TensorRole::input_scale,
         "mlp.down_proj.input_global_scale",
         DType::f32,
         {1},
         bytes_of(std::vector<float>{320})}};
  }
  static Scheme nvfp4_scheme() {
    Scheme scheme;
    scheme.quantized = true;
    scheme.weight = {Format::e2m1, Storage::nibbles, {Grouping::Kind::group, 1, 16}, true, DType::f8_e4m3, true, true,
                     false};
    scheme.activation = ActivationScheme{};
    scheme.activation->format = Format::e2m1;
    scheme.activation->stored_scale = scheme.activation->stored_multiplies = true;
    return scheme;
  }

  Result<LayerWeights> bind(const std::vector<Tensor>& tensors, const Scheme& scheme, int64_t expert = 0,
                            int64_t experts = 0, bool stacked = false) {
    layer_ = {};
    layer_.name = "model.layers.3.mlp.down_proj";
    layer_.n = 4;
    layer_.k = 32;
    layer_.scheme = scheme;
    layer_.kind = experts > 0 ? LayerKind::experts : LayerKind::linear;
    layer_.experts = experts;
    layer_.stacked = stacked;
    std::vector<TensorToWrite> files;
    Module module{"model.layers.3.mlp.down_proj", 4, {}};
    for (const Tensor& tensor : tensors) {
      files.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
      module.tensors.push_back({tensor.role, tensor.name, tensor.dtype, tensor.shape});
    }
    layer_.modules = {module};
    EXPECT_TRUE(write_safetensors(path_, files).ok());
    auto opened = Checkpoint::open(path_);
    EXPECT_TRUE(opened.ok());
    checkpoint_ = *opened;
    notes_.clear();
    return bind_weights(checkpoint_, layer_, expert, &notes_);
  }

  void expect_damaged(const std::vector<Tensor>& tensors, const Scheme& scheme, const std::string& tensor,
                      const std::string& found) {
    const auto bound = bind(tensors, scheme);
    ASSERT_FALSE(bound.ok()) << tensor << " with " << found;
    const ErrorInfo& error = bound.error();
    EXPECT_EQ(exit_code(error.code), 4);
    EXPECT_NE(error.subject.find(tensor), std::string::npos) << error.message();
    EXPECT_NE(error.subject.find("model.layers.3.mlp.down_proj"), std::string::npos) << error.message();
    EXPECT_NE(error.found.find(found), std::string::npos) << error.message();
    EXPECT_FALSE(error.wanted.empty());
  }

  std::string path_;
  LayerSpec layer_;
  Checkpoint checkpoint_;
  std::vector<std::string> notes_;
};

TEST_F(BindWeights, RolesBecomeViewsAndScalars) {
  const auto tensors = nvfp4();
  const auto bound = bind(tensors, nvfp4_scheme());
  ASSERT_TRUE(bound.ok()) << bound.error().message();
  ASSERT_EQ(bound->parts.size(), 1u);
  const PartWeights& part = bound->parts[0];
  EXPECT_EQ(part.n, 4);
  EXPECT_EQ(part.weight.size(), 64u);
  EXPECT_EQ(part.weight[63], 0x21);
  EXPECT_EQ(part.scale.size(), 8u);
  EXPECT_EQ(part.scale_dtype, DType::f8_e4m3);
  EXPECT_EQ(part.weight_global, 640);
  EXPECT_EQ(part.input_scale, 320);
  EXPECT_TRUE(part.bias.empty());
}

TEST_F(BindWeights, ScalarsOfEveryFloatType) {
  auto tensors = nvfp4();
  tensors[2] = {TensorRole::weight_global_scale, "g", DType::bf16, {}, {0x00, 0x40}};
  tensors[3] = {TensorRole::input_scale, "i", DType::f16, {1}, {0x00, 0x3E}};
  auto bound = bind(tensors, nvfp4_scheme());
  ASSERT_TRUE(bound.ok()) << bound.error().message();
  EXPECT_EQ(bound->parts[0].weight_global, 2);
  EXPECT_EQ(bound->parts[0].input_scale, 1.5f);
  const double third = 0.25;
  std::vector<uint8_t> bytes(8);
  std::memcpy(bytes.data(), &third, 8);
  tensors[2] = {TensorRole::weight_global_scale, "g", DType::f64, {1}, bytes};
  bound = bind(tensors, nvfp4_scheme());
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(bound->parts[0].weight_global, 0.25f);
}

TEST_F(BindWeights, ZeroBlockScaleIsLegal) {
  auto tensors = nvfp4();
  tensors[1].bytes[5] = 0;
  tensors[1].bytes[6] = 0x80;  // minus zero
  EXPECT_TRUE(bind(tensors, nvfp4_scheme()).ok());
}

TEST_F(BindWeights, BadBlockScalesNameTheRow) {
  for (const auto& [code, found] : {std::pair<uint8_t, std::string>{0x7F, "NaN"}, {0xFF, "NaN"}, {0xB8, "-1"}}) {
    auto tensors = nvfp4();
    tensors[1].bytes[5] = code;
    expect_damaged(tensors, nvfp4_scheme(), "mlp.down_proj.weight_scale", found + " at row 2, column 1");
  }
  auto tensors = nvfp4();
  tensors[1].bytes[3] = 0xFF;
  Scheme scheme = nvfp4_scheme();
  scheme.weight.scale = DType::f8_e8m0;
  tensors[1].dtype = DType::u8;
  expect_damaged(tensors, scheme, "weight_scale", "NaN at row 1, column 1");
}

// What may stand in a tensor-wide scale; BindWeights.Case48... below hold how it is reported.
TEST(Case48, ScaleMissingZeroNan) {
  const std::vector<float> bad = {0.0f, -0.0f, -1.0f, std::nanf(""), INFINITY, -INFINITY};
  for (const float value : bad)
    EXPECT_TRUE(find_bad_value(bytes_of(std::vector<float>{value}), DType::f32, ValueRule::positive)) << value;
  EXPECT_FALSE(find_bad_value(bytes_of(std::vector<float>{1e-40f}), DType::f32, ValueRule::positive));
}

TEST_F(BindWeights, Case48BadTensorWideScales) {
  const std::vector<std::pair<float, std::string>> values = {
      {0.0f, "0"}, {-2.0f, "-2"}, {std::nanf(""), "NaN"}, {INFINITY, "infinity"}};
  for (const auto& [value, found] : values) {
    for (const size_t which : {2u, 3u}) {
      auto tensors = nvfp4();
      tensors[which].bytes = bytes_of(std::vector<float>{value});
      expect_damaged(tensors, nvfp4_scheme(), tensors[which].name, found);
    }
  }
}

TEST_F(BindWeights, Case48MissingTensor) {
  auto tensors = nvfp4();
  tensors.pop_back();
  const auto bound = bind(tensors, nvfp4_scheme());
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code, ErrorCode::damaged_checkpoint);
  EXPECT_NE(bound.error().message().find("input scale"), std::string::npos) << bound.error().message();
}

TEST_F(BindWeights, ScalarOfTwoNumbers) {
  auto tensors = nvfp4();
  tensors[2].shape = {2};
  tensors[2].bytes = bytes_of(std::vector<float>{1, 2});
  expect_damaged(tensors, nvfp4_scheme(), "weight_global_scale", "[2]");
}

TEST_F(BindWeights, NanWeightCodes) {
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight = {Format::e4m3, Storage::dense, {Grouping::Kind::row, 1, 0}, true, DType::f32, false, false, false};
  std::vector<Tensor> tensors = {
      {TensorRole::weight, "w", DType::f8_e4m3, {4, 32}, std::vector<uint8_t>(128, 0x7E)},
      {TensorRole::weight_scale, "s", DType::f32, {4, 1}, bytes_of(std::vector<float>{1, 0, 2, 3})}};
  EXPECT_TRUE(bind(tensors, scheme).ok());
  tensors[0].bytes[70] = 0xFF;
  expect_damaged(tensors, scheme, "w", "NaN at row 2, column 6");
  tensors[0].bytes[70] = 0;
  tensors[1].bytes = bytes_of(std::vector<float>{1, 1, -1, 1});
  expect_damaged(tensors, scheme, "s", "-1 at row 2");
}

TEST_F(BindWeights, GroupIndices) {
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight = {Format::int4, Storage::dense_bits, {Grouping::Kind::group, 1, 16}, true, DType::f32, false, false,
                   true};
  std::vector<int32_t> order(32);
  for (int i = 0; i < 32; ++i) order[static_cast<size_t>(i)] = i % 2;
  const auto tensors = [&] {
    return std::vector<Tensor>{
        {TensorRole::weight, "w", DType::i32, {4, 4}, std::vector<uint8_t>(64, 0x77)},
        {TensorRole::weight_scale, "s", DType::f32, {4, 2}, bytes_of(std::vector<float>(8, -0.5f))},
        {TensorRole::weight_group_index, "g_idx", DType::i32, {32}, bytes_of(order)}};
  };
  auto bound = bind(tensors(), scheme);
  ASSERT_TRUE(bound.ok()) << bound.error().message();  // integer codes may have negative scales
  EXPECT_EQ(bound->parts[0].group_index.size(), 128u);
  order[7] = 2;
  expect_damaged(tensors(), scheme, "g_idx", "group 2 at column 7");
  order[7] = -3;
  expect_damaged(tensors(), scheme, "g_idx", "group -3 at column 7");
  order[7] = 1;
  order[0] = -1;  // no order to tell
  bound = bind(tensors(), scheme);
  ASSERT_TRUE(bound.ok());
  EXPECT_TRUE(bound->parts[0].group_index.empty());
  order[0] = 0;
  scheme.weight.act_order = false;
  expect_damaged(tensors(), scheme, "g_idx", "group 1 at column 1");
  // GPTQ: zeros throughout were never filled in, and -1 is no group.
  scheme.weight.storage = Storage::gptq_v1;
  std::fill(order.begin(), order.end(), 0);
  bound = bind(tensors(), scheme);
  ASSERT_TRUE(bound.ok()) << bound.error().message();
  EXPECT_TRUE(bound->parts[0].group_index.empty());
  order[0] = -1;
  expect_damaged(tensors(), scheme, "g_idx", "group -1 at column 0");
}

// In order, filled in: nothing that a kernel has to know.
TEST_F(BindWeights, Case38IndexInOrder) {
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight = {Format::uint4, Storage::gptq_v1, {Grouping::Kind::group, 1, 16}, true, DType::f32, false, false,
                   true};
  std::vector<int32_t> order(32);
  for (int i = 0; i < 32; ++i) order[static_cast<size_t>(i)] = i / 16;
  const auto tensors = [&] {
    return std::vector<Tensor>{
        {TensorRole::weight, "w", DType::i32, {4, 4}, std::vector<uint8_t>(64, 0x77)},
        {TensorRole::weight_scale, "s", DType::f32, {2, 4}, bytes_of(std::vector<float>(8, 0.5f))},
        {TensorRole::weight_group_index, "g_idx", DType::i32, {32}, bytes_of(order)}};
  };
  const auto out_of_order = [&]() -> Result<bool> { return is_out_of_order(checkpoint_, layer_); };
  auto bound = bind(tensors(), scheme);
  ASSERT_TRUE(bound.ok()) << bound.error().message();
  EXPECT_TRUE(bound->parts[0].group_index.empty());
  EXPECT_FALSE(out_of_order().value());
  std::swap(order[3], order[20]);
  bound = bind(tensors(), scheme);
  ASSERT_TRUE(bound.ok()) << bound.error().message();
  EXPECT_EQ(bound->parts[0].group_index.size(), 128u);
  EXPECT_TRUE(out_of_order().value());
  std::fill(order.begin(), order.end(), 0);  // never filled in
  ASSERT_TRUE(bind(tensors(), scheme).ok());
  EXPECT_FALSE(out_of_order().value());
  order[31] = 2;
  EXPECT_FALSE(bind(tensors(), scheme).ok());
  ASSERT_FALSE(out_of_order().ok());
  EXPECT_NE(out_of_order().error().message().find("group 2 at column 31"), std::string::npos);
}

// Zero points of symmetric weights (4 x 32, groups of 16) are told to the user where they say something else.
TEST_F(BindWeights, Case44ZeroPointsAgainstTheScheme) {
  const auto note_of = [&](Format format, Storage storage, DType dtype, const Shape& shape,
                           std::vector<uint8_t> bytes) -> std::string {
    Scheme scheme;
    scheme.quantized = true;
    scheme.weight = {format, storage, {Grouping::Kind::group, 1, 16}, true, DType::f32};
    const auto bound = bind({{TensorRole::weight, "w", DType::i32, {4, 4}, std::vector<uint8_t>(64, 0x77)},
                             {TensorRole::weight_scale, "s", DType::f32, {2, 4}, bytes_of(std::vector<float>(8, 0.5f))},
                             {TensorRole::weight_zero_point, "mlp.down_proj.zeros", dtype, shape, std::move(bytes)}},
                            scheme);
    EXPECT_TRUE(bound.ok());
    // They are not bound, so that no kernel can use them.
    EXPECT_TRUE(bound.ok() && bound->parts[0].zero_point.empty());
    EXPECT_LE(notes_.size(), 1u);
    return notes_.empty() ? "" : notes_[0];
  };
  const auto says = [](const std::string& note, const std::string& text) {
    return note.find(text) != std::string::npos ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << note;
  };
  using Bytes = std::vector<uint8_t>;
  // Four codes of 4 bits a group, and 16 bits of padding.
  const auto gptq = [&](Storage storage, Bytes bytes) {
    return note_of(Format::uint4, storage, DType::i32, {2, 1}, std::move(bytes));
  };
  EXPECT_EQ(gptq(Storage::gptq_v1, {0x77, 0x77, 0, 0, 0x77, 0x77, 0xFF, 0xFF}), "");
  EXPECT_EQ(gptq(Storage::gptq_v2, {0x88, 0x88, 0, 0, 0x88, 0x88, 0xFF, 0xFF}), "");
  EXPECT_TRUE(says(gptq(Storage::gptq_v1, Bytes(8, 0x88)), "zeros holds 8"));
  EXPECT_TRUE(says(notes_[0], "reads as zero point 9"));
  EXPECT_TRUE(says(notes_[0], "settles it: 8"));
  EXPECT_TRUE(says(notes_[0], "GPTQ v1 (checkpoint_format \"gptq\", or none)"));
  EXPECT_TRUE(says(gptq(Storage::gptq_v2, {0x88, 0x88, 0, 0, 0x88, 0x78, 0, 0}), "zeros holds 7"));
  EXPECT_TRUE(says(gptq(Storage::gptq_v1, Bytes(8, 0)), "zeros holds 0"));
  const auto awq = [&](Bytes bytes) {
    return note_of(Format::uint4, Storage::awq, DType::i32, {2, 1}, std::move(bytes));
  };
  EXPECT_EQ(awq(Bytes(8, 0x88)), "");
  EXPECT_TRUE(says(awq(Bytes(8, 0x78)), "AWQ reads as zero point 7"));
  // compressed-tensors: zeros, or the packed middle of the range; columns of 4 codes in one word for each group.
  const auto packed = [&](Bytes bytes) {
    return note_of(Format::int4, Storage::dense_bits, DType::i32, {1, 2}, std::move(bytes));
  };
  EXPECT_EQ(packed(Bytes(8, 0)), "");
  EXPECT_EQ(packed({0x88, 0x88, 0, 0, 0x88, 0x88, 0, 0}), "");
  EXPECT_TRUE(says(packed({0x88, 0x88, 0, 0, 0x88, 0x98, 0, 0}), "zero point 1;"));
  const auto bytewise = [&](Shape shape, Bytes bytes) {
    return note_of(Format::int8, Storage::dense, DType::i8, std::move(shape), std::move(bytes));
  };
  EXPECT_EQ(bytewise({4, 2}, Bytes(8, 0)), "");
  EXPECT_TRUE(says(bytewise({4, 2}, {0, 0, 0, 0, 0, 0, 0, 0xFD}), "zero point -3;"));
  EXPECT_EQ(bytewise({3}, {0, 0, 0}), "");
  EXPECT_TRUE(says(bytewise({3}, {0, 0, 1}), "zeros holds I8 [3] that are not 0"));
}

TEST_F(BindWeights, StackedExpertsAreSlices) {
  std::vector<uint8_t> weights(2 * 4 * 32 * 4);
  for (size_t i = 0; i < weights.size() / 4; ++i) {
    const float value = static_cast<float>(i);
    std::memcpy(weights.data() + i * 4, &value, 4);
  }
  const std::vector<Tensor> tensors = {{TensorRole::weight, "experts.down_proj", DType::f32, {2, 4, 32}, weights}};
  const auto bound = bind(tensors, Scheme{}, 1, 2, true);
  ASSERT_TRUE(bound.ok()) << bound.error().message();
  EXPECT_EQ(bound->parts[0].weight.size(), 4u * 32 * 4);
  EXPECT_EQ(read_number(bound->parts[0].weight, DType::f32, 0), 128);
  EXPECT_EQ(bind_weights(checkpoint_, layer_, 2).error().code, ErrorCode::usage);
}

TEST(BadValue, FirstOfManyInAnyChunkAndAlignment) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    const size_t count = 1 + random() % 400000;
    std::vector<uint8_t> bytes(count * 2 + 1);
    for (size_t i = 0; i < count; ++i) bytes[2 + i * 2] = 0x3F;
    const ByteView odd(bytes.data() + 1, count * 2);
    ASSERT_FALSE(find_bad_value(odd, DType::bf16, ValueRule::finite));
    const size_t first = random() % count, second = first + random() % (count - first);
    for (const size_t at : {first, second}) bytes[1 + at * 2] = 0x80, bytes[2 + at * 2] = 0x7F;  // infinity
    const auto bad = find_bad_value(odd, DType::bf16, ValueRule::finite);
    ASSERT_TRUE(bad);
    EXPECT_EQ(bad->index, static_cast<int64_t>(first));
    EXPECT_EQ(bad->found, "infinity");
  }
}

}  // namespace
}  // namespace gearshift
