// Small float checkpoints in a directory of their own, and access to what was written.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "gearshift/quantize.h"

namespace gearshift {

inline std::string golden(const std::string& name) { return std::string(GEARSHIFT_TEST_DATA) + "/quantize/" + name; }

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A tensor of random bf16 or fp32 weights.
struct Source {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  std::vector<uint8_t> bytes;
};

class QuantizeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::random_device device;
    seed_ = device();
    random_.seed(seed_);
    RecordProperty("seed", std::to_string(seed_));
    std::string pattern = (std::filesystem::temp_directory_path() / "gearshift-quantize-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    std::filesystem::remove_all(directory_);
    if (HasFailure()) std::fprintf(stderr, "seed %u\n", seed_);
  }

  Source random_matrix(const std::string& name, int64_t n, int64_t k, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    Source source{name, {n, k}, DType::f32, std::vector<uint8_t>(static_cast<size_t>(n * k) * 4)};
    for (int64_t i = 0; i < n * k; ++i) set(source, i, normal(random_));
    return source;
  }
  static void set(Source& source, int64_t i, float value) { std::memcpy(source.bytes.data() + i * 4, &value, 4); }

  // A model directory of these tensors; returns its path.
  std::string write_model(const std::vector<Source>& sources,
                          const std::string& config = R"({"architectures":["LlamaForCausalLM"]})") {
    const auto path = directory_ / "model";
    std::filesystem::create_directories(path);
    std::ofstream(path / "config.json") << config;
    std::vector<TensorToWrite> tensors;
    for (const Source& s : sources) tensors.push_back({s.name, s.dtype, s.shape, s.bytes});
    EXPECT_TRUE(write_safetensors((path / "model.safetensors").string(), tensors).ok());
    return path.string();
  }

  QuantizeRequest request(const std::string& model, std::vector<QuantizeRule> rules) const {
    QuantizeRequest r;
    r.model = model;
    r.out = out();
    r.rules = std::move(rules);
    return r;
  }
  std::string out() const { return (directory_ / "out").string(); }
  // Entries of the directory in which `out` and its staging directory live.
  size_t entries() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(directory_), std::filesystem::directory_iterator()));
  }

  std::filesystem::path directory_;
  std::mt19937 random_;
  unsigned seed_ = 0;
};

inline float scalar(const Checkpoint& checkpoint, const std::string& name) {
  const TensorInfo* tensor = checkpoint.find(name);
  EXPECT_NE(tensor, nullptr) << name;
  if (tensor == nullptr) return 0;
  float value = 0;
  std::memcpy(&value, checkpoint.bytes(*tensor).value().data(), sizeof value);
  return value;
}

}  // namespace gearshift
