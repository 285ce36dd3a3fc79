#include "quantize/shards.h"

#include "quantize/fixture.h"

namespace gearshift::quantize_detail {
namespace {

class ShardsTest : public QuantizeTest {};

TEST_F(ShardsTest, OneFileWhileItIsSmallElseAnIndex) {
  for (const uint64_t limit : {uint64_t{1} << 20, uint64_t{100}, uint64_t{1}}) {
    const auto path = directory_ / std::to_string(limit);
    std::filesystem::create_directories(path);
    std::ofstream(path / "config.json") << "{}";
    const Source borrowed = random_matrix("b.weight", 4, 4);
    ShardWriter shards(path.string(), limit);
    ASSERT_TRUE(
        shards.add({{"a.codes", DType::u8, {3}, {1, 2, 3}}, {"a.scale", DType::f32, {1}, {0, 0, 0x80, 0x3F}}}).ok());
    ASSERT_TRUE(shards.add(TensorInfo{borrowed.name, borrowed.dtype, borrowed.shape, 0, 0, 64}, borrowed.bytes).ok());
    ASSERT_TRUE(shards.add({{"c.codes", DType::u8, {60}, std::vector<uint8_t>(60, 9)}}).ok());
    ASSERT_TRUE(shards.finish().ok());
    const auto read = Checkpoint::open(path.string());
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(read->files().size(), limit > 1000 ? 1u : limit == 100 ? 2u : 3u);
    EXPECT_EQ(std::filesystem::exists(path / "model.safetensors"), limit > 1000);
    ASSERT_EQ(read->tensors().size(), 4u);
    EXPECT_EQ(scalar(*read, "a.scale"), 1);
    EXPECT_EQ(read->bytes(*read->find("c.codes")).value()[59], 9);
    for (const TensorInfo& tensor : read->tensors()) {
      EXPECT_EQ(tensor.offset % static_cast<uint64_t>(bits(tensor.dtype) / 8), 0u) << tensor.name << " is aligned";
    }
  }
}

}  // namespace
}  // namespace gearshift::quantize_detail
