#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <random>

#include "checkpoint/hostile_files.h"

namespace gearshift {
namespace {

Result<SafetensorsTable> read(std::string_view file) {
  return read_safetensors({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "f.safetensors");
}

ErrorInfo refusal(std::string_view file) {
  const Result<SafetensorsTable> table = read(file);
  if (table.ok()) return {ErrorCode::runtime, "", "accepted", "", "", {}};
  EXPECT_EQ(exit_code(table.error().code), 4);
  EXPECT_EQ(table.error().subject.rfind("f.safetensors", 0), 0u) << table.error().message();
  EXPECT_LT(table.error().message().size(), 1000u);
  return table.error();
}

void expect_refused(std::string_view file, std::string_view part) {
  const std::string message = refusal(file).message();
  EXPECT_NE(message.find(part), std::string::npos) << message << "\n  lacks: " << part;
}

void expect_header_refused(const std::string& header, size_t data, std::string_view part) {
  expect_refused(safetensors_file(header, data), part);
}

const std::string kTwo =
    R"({"b":{"dtype":"F32","shape":[2,2],"data_offsets":[4,20]},"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})";

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirData) {
  const std::string file = safetensors_file(kTwo + "   ", 20);
  const Result<SafetensorsTable> table = read(file);
  ASSERT_TRUE(table.ok()) << table.error().message();
  EXPECT_TRUE(table->has_data);
  ASSERT_EQ(table->tensors.size(), 2u);
  EXPECT_EQ(table->tensors[0].name, "a");
  EXPECT_EQ(table->tensors[0].dtype, DType::f16);
  EXPECT_EQ(table->tensors[0].offset, file.size() - 20);
  EXPECT_EQ(table->tensors[1].shape, (Shape{2, 2}));
  EXPECT_EQ(table->tensors[1].bytes, 16u);
  EXPECT_EQ(table->tensors[1].offset, file.size() - 16);
}

TEST(Safetensors, EveryTruncationIsRefusedExceptAtTheEndOfTheHeader) {
  const std::string file = safetensors_file(kTwo, 20);
  for (size_t length = 0; length < file.size(); ++length) {
    const Result<SafetensorsTable> table = read(file.substr(0, length));
    if (length == 8 + kTwo.size()) {
      ASSERT_TRUE(table.ok());
      EXPECT_FALSE(table->has_data);
      EXPECT_EQ(table->tensors.size(), 2u);
    } else {
      ASSERT_FALSE(table.ok()) << length;
      EXPECT_EQ(table.error().code, ErrorCode::damaged_checkpoint);
    }
  }
}

TEST(Safetensors, SizesOfAnIncompleteFileAreSaid) {
  const std::string file = safetensors_file(kTwo, 20);
  expect_refused(file.substr(0, file.size() - 1), fmt::format("{} bytes", file.size() - 1));
  expect_refused(file.substr(0, file.size() - 1), fmt::format("wanted {} bytes", file.size()));
  expect_refused(file.substr(0, file.size() - 1), "tensor \"b\"");
  expect_refused(file.substr(0, file.size() - 18), "tensor \"a\"");
  expect_refused(file + "x", "1 bytes after the last tensor");
  expect_refused(file.substr(0, 50), "a header of");
  expect_refused("", "an empty file");
  expect_refused("1234567", "7 bytes");
}

TEST(Safetensors, AnAbsurdLengthSaysWhichBytesWereReadAndWhatTheyUsuallyAre) {
  expect_refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", "Git LFS pointer");
  expect_refused("version https://git-lfs.github.com/spec/v1\n", "76 65 72 73 69 6f 6e 20 (\"version \")");
  expect_refused("<!DOCTYPE html><html></html>", "web page");
  expect_refused("PK\x03\x04 and the rest of an archive", "pickled weights");
  expect_refused("\x80\x02}q\x00. and the rest", "pickled weights");
  expect_refused("{\"w\":{\"dtype\":\"F32\"}}", "JSON text");
  expect_refused(std::string(64, '\0'), "zeros");
  expect_refused("some other text, of no known kind", "the limit of the safetensors format");
  expect_refused(std::string(8, '\xFF') + "{}", "18446744073709551615");
  expect_refused(safetensors_file("{}", 0, 100'000'001), "100000000");
  EXPECT_EQ(refusal("GGUF\x03 and the rest of the file").code, ErrorCode::unsupported_scheme);
  EXPECT_EQ(refusal("PK\x03\x04 and the rest").code, ErrorCode::unsupported_scheme);
  EXPECT_FALSE(refusal("GGUF\x03 and the rest of the file").hint.empty());
}

TEST(Safetensors, HeadersThatAreNoHeaders) {
  expect_header_refused("", 0, "zeros");
  expect_header_refused("[]", 0, "starts with");
  expect_header_refused(" {}", 0, "starts with");
  expect_header_refused("{}{}", 0, "JSON");
  expect_header_refused("{", 0, "JSON");
  expect_header_refused(std::string("{}\0\0", 4), 0, "value 0");
  expect_header_refused(R"({"w":[]})", 0, "wanted an object");
  expect_header_refused(R"({"w":3})", 0, "wanted an object");
  expect_header_refused(R"({"w":{}})", 0, "no \"dtype\"");
  expect_header_refused(R"({"w":{"dtype":"F32","shape":[1]}})", 4, "no \"data_offsets\"");
  std::string deep = R"({"__metadata__":)";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  expect_header_refused(deep, 0, "levels of nesting");
}

TEST(Safetensors, EveryMemberOfATensorIsChecked) {
  expect_header_refused(one_tensor("F33", "[1]", "[0,4]"), 4, "dtype \"F33\"");
  expect_header_refused(R"({"w":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, "integer as \"dtype\"");
  expect_header_refused(R"({"w":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})", 4, "an array as \"dtype\"");
  expect_header_refused(one_tensor("F32", "[-1]", "[0,4]"), 4, "[-1]");
  expect_header_refused(one_tensor("F32", "[1.0]", "[0,4]"), 4, "\"shape\"");
  expect_header_refused(one_tensor("F32", "[NaN]", "[0,4]"), 4, "JSON");
  expect_header_refused(one_tensor("F32", "[null]", "[0,4]"), 4, "null as \"shape\"");
  expect_header_refused(one_tensor("F32", "[\"1\"]", "[0,4]"), 4, "string as \"shape\"");
  expect_header_refused(one_tensor("F32", "[[1]]", "[0,4]"), 4, "an array inside as \"shape\"");
  expect_header_refused(one_tensor("F32", "1", "[0,4]"), 4, "integer as \"shape\"");
  expect_header_refused(one_tensor("F32", "{}", "[0,4]"), 4, "an object as \"shape\"");
  expect_header_refused(one_tensor("F32", "[4294967296,4294967296]", "[0,4]"), 4, "shape F32");
  expect_header_refused(one_tensor("F64", "[9223372036854775807]", "[0,4]"), 4, "shape F64");
  expect_header_refused(one_tensor("F32", "[18446744073709551617]", "[0,4]"), 4, "\"shape\"");
  expect_header_refused(one_tensor("F4", "[3]", "[0,1]"), 1, "whole bytes");
  expect_header_refused(one_tensor("F6_E2M3", "[2]", "[0,1]"), 1, "whole bytes");
  std::string ones = "[1";
  for (int i = 0; i < 100; ++i) ones += ",1";
  expect_header_refused(one_tensor("U8", ones + "]", "[0,1]"), 1, "more than 64 numbers");
  const std::string twice = R"({"w":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  expect_header_refused(twice, 1, "\"dtype\" twice");
}

TEST(Safetensors, OffsetsAreChecked) {
  for (const char* offsets : {"[4,0]", "[-4,0]", "[0]", "[0,4,8]", "[]"}) {
    expect_header_refused(one_tensor("F32", "[1]", offsets), 8, "wanted [begin, end]");
  }
  expect_header_refused(one_tensor("F32", "[1]", "[0,4.5]"), 4, "\"data_offsets\"");
  expect_header_refused(one_tensor("F32", "[1]", "[0,1e400]"), 4, "JSON");
  expect_header_refused(one_tensor("F32", "[1]", "[0,8]"), 8, "wanted 4 bytes for F32 [1]");
  expect_header_refused(one_tensor("F32", "[1]", "[4,8]"), 8, "a hole");
  expect_header_refused(one_tensor("U8", "[9223372036854775807]", "[0,9223372036854775807]"), 8, "shape U8");
  expect_header_refused(one_tensor("U8", "[1152921504606846976]", "[0,1152921504606846976]"), 8,
                        "ends inside its data");
  const auto pair = [](const char* first, const char* second) {
    return fmt::format(
        R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":{}}},"b":{{"dtype":"U8","shape":[4],"data_offsets":{}}}}})",
        first, second);
  };
  expect_header_refused(pair("[0,4]", "[2,6]"), 6, "an overlap");
  expect_header_refused(pair("[0,4]", "[0,4]"), 4, "an overlap");
  expect_header_refused(pair("[0,4]", "[5,9]"), 9, "a hole");
  expect_header_refused(pair("[0,4]", "[5,9]"), 9, "the end of tensor \"a\"");
  expect_header_refused(pair("[4,8]", "[8,12]"), 12, "the start of the data");
  EXPECT_TRUE(read(safetensors_file(pair("[4,8]", "[0,4]"), 8)).ok());
}

TEST(Safetensors, WhatIsLegalIsAccepted) {
  for (const std::string& header :
       {std::string("{}"), std::string(R"({"__metadata__":{"format":"pt"}})"),
        std::string(R"({"__metadata__":[1,{"a":[]}]})"), std::string(R"({"__metadata__":null})"),
        one_tensor("F32", "[0]", "[0,0]"), one_tensor("F32", "[3,0,5]", "[0,0]")}) {
    const Result<SafetensorsTable> table = read(safetensors_file(header, 0));
    ASSERT_TRUE(table.ok()) << table.error().message();
    EXPECT_TRUE(table->has_data) << header;
  }
  EXPECT_TRUE(read(safetensors_file(one_tensor("F64", "[]", "[0,8]"), 8)).ok());
  EXPECT_TRUE(read(safetensors_file(one_tensor("F4", "[2,3]", "[0,3]"), 3)).ok());
  EXPECT_TRUE(read(safetensors_file(one_tensor("F6_E3M2", "[4]", "[0,3]"), 3)).ok());
  EXPECT_TRUE(
      read(safetensors_file(R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":{"x":[1]}}})", 1)).ok());
  const Result<SafetensorsTable> name =
      read(safetensors_file(R"({"a\u0000b\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->tensors[0].name, std::string("a\0b\n", 4));
  EXPECT_EQ(tensor_called(name->tensors[0].name), "tensor \"a\\x00b\\n\"");
}

TEST(Safetensors, StoredBytes) {
  EXPECT_EQ(stored_bytes(DType::f32, {}), 4u);
  EXPECT_EQ(stored_bytes(DType::f4, {16, 3}), 24u);
  EXPECT_EQ(stored_bytes(DType::f6_e2m3, {4}), 3u);
  EXPECT_EQ(stored_bytes(DType::f6_e2m3, {3}), std::nullopt);
  EXPECT_EQ(stored_bytes(DType::bf16, {0, 7}), 0u);
  EXPECT_EQ(stored_bytes(DType::u8, {-1}), std::nullopt);
  EXPECT_EQ(stored_bytes(DType::u8, {INT64_MAX, INT64_MAX}), std::nullopt);
  EXPECT_EQ(stored_bytes(DType::f64, {INT64_MAX}), std::nullopt);
}

// Random damage to a valid file is either refused, or what is accepted lies inside the file.
TEST(Safetensors, RandomDamageNeverReachesOutsideTheFile) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const std::string valid = safetensors_file(kTwo, 20);
  for (int i = 0; i < 20'000; ++i) {
    std::string file = valid;
    for (size_t n = 1 + random() % 3; n > 0; --n) file[random() % file.size()] = static_cast<char>(random());
    const Result<SafetensorsTable> table = read(file);
    if (!table.ok()) {
      EXPECT_EQ(exit_code(table.error().code), 4);
      continue;
    }
    for (const TensorInfo& tensor : table->tensors) {
      EXPECT_EQ(stored_bytes(tensor.dtype, tensor.shape), tensor.bytes);
      if (table->has_data) {
        EXPECT_LE(tensor.offset + tensor.bytes, file.size());
      }
    }
  }
}

TEST(WriteSafetensors, RandomTensorsReadBack) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const Folder folder;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<uint8_t>> data;
    std::vector<TensorToWrite> tensors;
    for (size_t i = random() % 8; i > 0; --i) {
      TensorToWrite tensor;
      tensor.name = fmt::format("\"t\\{}\n\xC3\xA9", i);
      tensor.dtype = static_cast<DType>(random() % 19);
      for (size_t d = random() % 4; d > 0; --d) tensor.shape.push_back(random() % 5);
      tensor.shape.push_back(8);  // elements of 4 and 6 bits fill whole bytes
      data.emplace_back(*stored_bytes(tensor.dtype, tensor.shape));
      for (uint8_t& byte : data.back()) byte = static_cast<uint8_t>(random());
      tensors.push_back(tensor);
    }
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].data = data[i];
    ASSERT_TRUE(write_safetensors(folder.path("w.safetensors"), tensors).ok());
    const std::string file = folder.read("w.safetensors");
    const Result<SafetensorsTable> table = read(file);
    ASSERT_TRUE(table.ok()) << table.error().message();
    EXPECT_EQ(static_cast<uint8_t>(file[0]) % 8, 0);  // of the header's length: data is aligned to 8 bytes
    ASSERT_EQ(table->tensors.size(), tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      // Tensors without elements share their place with the next one; only the others have an order on disk.
      const auto found = std::find_if(table->tensors.begin(), table->tensors.end(),
                                      [&](const TensorInfo& tensor) { return tensor.name == tensors[i].name; });
      ASSERT_NE(found, table->tensors.end());
      EXPECT_EQ(found->dtype, tensors[i].dtype);
      EXPECT_EQ(found->shape, tensors[i].shape);
      EXPECT_EQ(file.substr(found->offset, found->bytes), std::string(data[i].begin(), data[i].end()));
    }
    EXPECT_EQ(folder.count(), 1u);
  }
}

TEST(WriteSafetensors, ContradictionsAreRefusedAndLeaveNothingBehind) {
  const Folder folder;
  const std::vector<uint8_t> four(4);
  const auto refused = [&](std::vector<TensorToWrite> tensors) {
    const Result<void> result = write_safetensors(folder.path("w.safetensors"), tensors);
    return !result.ok() && result.error().code == ErrorCode::usage && folder.count() == 0;
  };
  EXPECT_TRUE(refused({{"a", DType::f32, {2}, four}}));
  EXPECT_TRUE(refused({{"a", DType::f32, {-1}, four}}));
  EXPECT_TRUE(refused({{"a", DType::f32, {1}, four}, {"a", DType::f32, {1}, four}}));
  EXPECT_TRUE(refused({{"__metadata__", DType::f32, {1}, four}}));
  EXPECT_TRUE(refused({{"\xFF", DType::f32, {1}, four}}));
  EXPECT_TRUE(refused({{"a", DType::f4, {3}, four}}));
}

TEST(WriteSafetensors, AFailureKeepsTheOldFileAndRemovesTheNewOne) {
  const Folder folder;
  folder.write("w.safetensors", "old");
  const std::vector<uint8_t> data(1 << 20);
  // A limit on the size of files fails a write in the middle, as a full disk does.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1 << 16, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Result<void> result = write_safetensors(folder.path("w.safetensors"), {{"a", DType::u8, {1 << 20}, data}});
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::runtime);
  EXPECT_EQ(result.error().subject, folder.path("w.safetensors"));
  EXPECT_EQ(folder.read("w.safetensors"), "old");
  EXPECT_EQ(folder.count(), 1u);
  EXPECT_FALSE(write_safetensors(folder.path("missing/w.safetensors"), {}).ok());
  EXPECT_FALSE(write_safetensors(folder.path(), {}).ok());
  EXPECT_EQ(folder.count(), 1u);
}

}  // namespace
}  // namespace gearshift
