#include "gearshift/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "checkpoint/hostile_files.h"

namespace gearshift {
namespace {

std::string bytes_tensor(const std::string& name, int begin, int end) {
  return "\"" + name + R"(":{"dtype":"U8","shape":[)" + std::to_string(end - begin) + R"(],"data_offsets":[)" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}
std::string shard(const std::string& first, const std::string& second) {
  return safetensors_file("{" + bytes_tensor(first, 0, 4) + "," + bytes_tensor(second, 4, 7) + "}", 7);
}

ErrorInfo refusal(const std::string& path, ErrorCode code) {
  const Result<Checkpoint> checkpoint = Checkpoint::open(path);
  if (checkpoint.ok()) return {ErrorCode::runtime, "", "accepted", "", "", {}};
  EXPECT_EQ(name(checkpoint.error().code), name(code)) << checkpoint.error().message();
  EXPECT_NE(checkpoint.error().message().find(path.substr(0, path.find('\0'))), std::string::npos);
  return checkpoint.error();
}
void expect_refused(const std::string& path, ErrorCode code, std::string_view part) {
  const std::string message = refusal(path, code).message();
  EXPECT_NE(message.find(part), std::string::npos) << message << "\n  lacks: " << part;
}

TEST(Checkpoint, ASingleFileWithSideFiles) {
  const Folder folder;
  folder.write("model.safetensors", shard("layers.10.w", "layers.9.w"));
  folder.write("config.json", "{\"a\":1}");
  folder.write("params.json", "{}");
  folder.write("other.safetensors", "not looked at");
  for (const std::string& path : {folder.path(), folder.path() + "/", folder.path("model.safetensors")}) {
    const Result<Checkpoint> checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
    EXPECT_EQ(checkpoint->path(), path);
    ASSERT_EQ(checkpoint->tensors().size(), 2u);
    EXPECT_EQ(checkpoint->tensors()[0].name, "layers.9.w");
    EXPECT_EQ(checkpoint->find("layers.10.w")->shape, Shape{4});
    EXPECT_EQ(checkpoint->find("layers.1.w"), nullptr);
    EXPECT_EQ(checkpoint->find(""), nullptr);
    EXPECT_EQ(checkpoint->side_file("config.json"), "{\"a\":1}");
    EXPECT_EQ(checkpoint->side_file("params.json"), "{}");
    EXPECT_EQ(checkpoint->side_file("hf_quant_config.json"), "");
    EXPECT_EQ(checkpoint->side_file("anything"), "");
    const std::string file = folder.read("model.safetensors");
    const Result<ByteView> bytes = checkpoint->bytes(*checkpoint->find("layers.9.w"));
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(std::string(bytes->begin(), bytes->end()), file.substr(file.size() - 3));
  }
}

TEST(Checkpoint, BytesOutliveTheCheckpointTheyWereAskedOf) {
  const Folder folder;
  folder.write("model.safetensors", shard("a", "b"));
  Result<Checkpoint> first = Checkpoint::open(folder.path());
  ASSERT_TRUE(first.ok());
  const Checkpoint copy = *first;
  const ByteView bytes = *first->bytes(*first->find("a"));
  first = ErrorInfo{};
  EXPECT_EQ(bytes[0], 11);
  EXPECT_EQ(copy.tensors().size(), 2u);
}

TEST(Checkpoint, AFileThatEndsAfterItsHeaderHasATableAndNoBytes) {
  const Folder folder;
  folder.write("model.safetensors", safetensors_file("{" + bytes_tensor("w", 0, 4) + "}", 0));
  const Result<Checkpoint> checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_FALSE(checkpoint->files()[0].has_data);
  const Result<ByteView> bytes = checkpoint->bytes(checkpoint->tensors()[0]);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.error().code, ErrorCode::damaged_checkpoint);
  EXPECT_NE(bytes.error().subject.find("tensor \"w\""), std::string::npos);
}

TEST(Checkpoint, TensorsOfOtherCheckpointsAreRefused) {
  const Folder folder;
  folder.write("model.safetensors", shard("a", "b"));
  const Result<Checkpoint> checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok());
  TensorInfo tensor = checkpoint->tensors()[0];
  tensor.offset = UINT64_MAX;
  EXPECT_FALSE(checkpoint->bytes(tensor).ok());
  tensor = checkpoint->tensors()[0];
  tensor.bytes = 1000;
  EXPECT_FALSE(checkpoint->bytes(tensor).ok());
  for (const int file : {-1, 1}) {
    tensor = checkpoint->tensors()[0];
    tensor.file = file;
    EXPECT_FALSE(checkpoint->bytes(tensor).ok());
  }
}

class Shards : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("model-00001-of-00002.safetensors", shard("a", "b"));
    folder_.write("model-00002-of-00002.safetensors", shard("c", "d"));
    write_index(R"("a":"model-00001-of-00002.safetensors","b":"model-00001-of-00002.safetensors",
                   "c":"model-00002-of-00002.safetensors","d":"model-00002-of-00002.safetensors")");
  }
  void write_index(const std::string& map) {
    folder_.write("model.safetensors.index.json", R"({"metadata":{"total_size":14},"weight_map":{)" + map + "}}");
  }
  Folder folder_;
};

TEST_F(Shards, AreReadThroughTheIndex) {
  folder_.write("consolidated.safetensors", shard("a", "x"));  // the index does not name it
  for (const std::string& path : {folder_.path(), folder_.path("model.safetensors.index.json")}) {
    const Result<Checkpoint> checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
    ASSERT_EQ(checkpoint->files().size(), 2u);
    ASSERT_EQ(checkpoint->tensors().size(), 4u);
    const TensorInfo* tensor = checkpoint->find("c");
    EXPECT_EQ(checkpoint->files()[static_cast<size_t>(tensor->file)].path,
              folder_.path("model-00002-of-00002.safetensors"));
    EXPECT_EQ((*checkpoint->bytes(*tensor))[0], 11);
  }
}

TEST_F(Shards, AMissingShardIsNamed) {
  std::filesystem::remove(folder_.path("model-00002-of-00002.safetensors"));
  expect_refused(folder_.path(), ErrorCode::damaged_checkpoint, "model-00002-of-00002.safetensors");
  EXPECT_EQ(refusal(folder_.path(), ErrorCode::damaged_checkpoint).details.size(), 1u);
}

TEST_F(Shards, ATensorThatIsNotWhereTheIndexSaysIsNamed) {
  write_index(R"("a":"model-00001-of-00002.safetensors","e":"model-00002-of-00002.safetensors")");
  expect_refused(folder_.path(), ErrorCode::damaged_checkpoint, "tensor \"e\"");
  write_index(R"("a":"model-00002-of-00002.safetensors","b":"model-00001-of-00002.safetensors")");
  expect_refused(folder_.path(), ErrorCode::damaged_checkpoint, "tensor \"a\"");
}

TEST_F(Shards, ATensorTheIndexDoesNotNameIsKept) {
  write_index(R"("a":"model-00001-of-00002.safetensors","c":"model-00002-of-00002.safetensors")");
  const Result<Checkpoint> checkpoint = Checkpoint::open(folder_.path());
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_NE(checkpoint->find("b"), nullptr);
}

TEST_F(Shards, ATensorInTwoShardsIsNamedWithBoth) {
  folder_.write("model-00002-of-00002.safetensors", shard("a", "d"));
  const std::string message = refusal(folder_.path(), ErrorCode::damaged_checkpoint).message();
  EXPECT_NE(message.find("tensor \"a\""), std::string::npos);
  EXPECT_NE(message.find("model-00001"), std::string::npos);
  EXPECT_NE(message.find("model-00002"), std::string::npos);
}

TEST_F(Shards, AHostileIndexIsRefused) {
  const auto with_index = [&](const std::string& text, std::string_view part) {
    folder_.write("model.safetensors.index.json", text);
    expect_refused(folder_.path(), ErrorCode::damaged_checkpoint, part);
  };
  with_index("", "JSON");
  with_index("[]", "no \"weight_map\"");
  with_index(R"({"weight_map":[]})", "array as \"weight_map\"");
  with_index(R"({"weight_map":{"a":3}})", "tensor \"a\"");
  with_index(R"({"weight_map":{"a":""}})", "tensor \"a\"");
  with_index(R"({"weight_map":{"a":"/etc/passwd"}})", "/etc/passwd");
  with_index(R"({"weight_map":{"a":"x/../../../etc/passwd"}})", "etc/passwd");
  with_index(R"({"weight_map":{"a":"m\u0000"}})", "m\\x00");
  with_index(R"({"weight_map":{"a":"s","a":"s"}})", "key \"a\" twice");
  with_index(std::string(1'000'000, '['), "levels of nesting");
}

TEST(Checkpoint, SeveralFilesWithoutAnIndexAreAllRead) {
  const Folder folder;
  folder.write("consolidated-2.safetensors", shard("a", "b"));
  folder.write("consolidated-10.safetensors", shard("c", "d"));
  const Result<Checkpoint> checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok());
  ASSERT_EQ(checkpoint->files().size(), 2u);
  EXPECT_EQ(checkpoint->files()[0].path, folder.path("consolidated-2.safetensors"));
  EXPECT_EQ(checkpoint->tensors().size(), 4u);
}

TEST(Checkpoint, ANameTwiceInOneHeaderIsRefused) {
  const Folder folder;
  const std::string path = folder.write(
      "f.safetensors", safetensors_file("{" + bytes_tensor("w", 0, 4) + "," + bytes_tensor("w", 4, 8) + "}", 8));
  expect_refused(path, ErrorCode::damaged_checkpoint, "tensor \"w\": found the name twice");
}

TEST(Checkpoint, AConfigurationAloneHasNoTensors) {
  const Folder folder;
  folder.write("config.json", "{\"x\":1}");
  folder.write("hf_quant_config.json", "{}");
  folder.write("other-model.json", "{\"x\":2}");
  for (const std::string& path : {folder.path(), folder.path("config.json")}) {
    const Result<Checkpoint> checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
    EXPECT_TRUE(checkpoint->tensors().empty());
    EXPECT_EQ(checkpoint->side_file("config.json"), "{\"x\":1}");
    EXPECT_EQ(checkpoint->side_file("hf_quant_config.json"), "{}");
  }
  const Result<Checkpoint> other = Checkpoint::open(folder.path("other-model.json"));
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->side_file("config.json"), "{\"x\":2}");
  EXPECT_EQ(other->side_file("hf_quant_config.json"), "");
}

TEST(Checkpoint, WrongPathsAreUsage) {
  const Folder folder;
  expect_refused(folder.path("nothing-here"), ErrorCode::usage, "no such file");
  expect_refused(folder.path(), ErrorCode::usage, "a directory with neither");
  expect_refused("", ErrorCode::usage, "no such file");
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  expect_refused(folder.path("pipe"), ErrorCode::usage, "pipe");
}

TEST(Checkpoint, WeightsOfOtherFormatsAreNamedWithAHint) {
  for (const char* file : {"pytorch_model.bin", "model.pt", "model.pth", "model.Q4_K_M.gguf"}) {
    const Folder folder;
    folder.write("config.json", "{}");
    folder.write(file, "GGUF");
    for (const std::string& path : {folder.path(), folder.path(file)}) {
      const ErrorInfo error = refusal(path, ErrorCode::unsupported_scheme);
      EXPECT_NE(error.subject.find(file), std::string::npos);
      EXPECT_FALSE(error.hint.empty());
    }
  }
  const Folder folder;
  EXPECT_NE(
      refusal(folder.write("x.safetensors", "GGUF\x03 and more"), ErrorCode::unsupported_scheme).hint.find("GGUF"),
      std::string::npos);
}

TEST(Checkpoint, AnEmptyFileIsDamaged) {
  const Folder folder;
  expect_refused(folder.write("x.safetensors", ""), ErrorCode::damaged_checkpoint, "an empty file");
}

}  // namespace
}  // namespace gearshift
