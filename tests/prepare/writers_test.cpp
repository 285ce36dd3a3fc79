// Checkpoints that other tools wrote, and the weights that those tools read back from them (tests/data/writers, whose
// README.md names versions, sources and roundings).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "gearshift/prepare.h"
#include "kernel/reference/decode.h"
#include "prepare/bad_value.h"

namespace gearshift {
namespace {

const std::string data = GEARSHIFT_TEST_DATA "/writers/";

std::vector<std::string> directories() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Significant bits of the type in which a writer returned its weights, and the exponent of its smallest normal number.
struct Precision {
  int bits;
  int lowest;
};
Precision precision(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return {8, -126};
    case DType::f16:
      return {11, -14};
    default:
      return {24, -126};
  }
}

// Distance of two neighbours of that type near x.
double unit(double x, Precision type) {
  const int exponent = x == 0 ? type.lowest : std::max(std::ilogb(x), type.lowest);
  return std::ldexp(1.0, exponent - type.bits + 1);
}
double round_to(double x, Precision type) {
  const double step = unit(x, type);
  return std::nearbyint(x / step) * step;
}

// Last places by which a writer's weights may be off, where it rounds more than once on the way: ModelOpt multiplies
// the scales of NVFP4 first, and its integer quantizers divide by the rounded reciprocal of the scale.
int last_places(const std::string& directory) {
  const bool twice = directory.find("nvfp4") != std::string::npos || directory.find("_int") != std::string::npos ||
                     directory.find("_w4a8") != std::string::npos;
  return directory.starts_with("modelopt_") && twice ? 1 : 0;
}

class Writers : public ::testing::TestWithParam<std::string> {};

TEST_P(Writers, WeightsAreTheWriters) {
  const std::string directory = data + GetParam();
  const auto checkpoint = Checkpoint::open(directory);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
  const auto expected = Checkpoint::open(directory + "/expected.safetensors");
  ASSERT_TRUE(expected.ok()) << expected.error().message();
  const auto layers = read_layers(*checkpoint);
  ASSERT_TRUE(layers.ok()) << layers.error().message();
  ASSERT_FALSE(layers->layers.empty());

  std::set<std::string> compared;
  for (const LayerSpec& layer : layers->layers) {
    EXPECT_TRUE(layer.scheme.quantized) << layer.name;
    const int64_t experts = layer.stacked ? layer.experts : 1;
    for (int64_t expert = 0; expert < experts; ++expert) {
      std::vector<std::string> notes;
      const auto weights = bind_weights(*checkpoint, layer, expert, &notes);
      ASSERT_TRUE(weights.ok()) << weights.error().message();
      EXPECT_TRUE(notes.empty()) << notes.front();
      ASSERT_EQ(weights->parts.size(), 1u);
      const std::string name = layer.modules[0].name + (layer.stacked ? "." + std::to_string(expert) : "") + ".w";
      const TensorInfo* wanted = expected->find(name);
      ASSERT_NE(wanted, nullptr) << name;
      ASSERT_EQ(wanted->shape, (Shape{layer.n, layer.k})) << name;
      const ByteView bytes = *expected->bytes(*wanted);
      const StoredWeights stored(*weights, 0);
      const Precision type = precision(wanted->dtype);
      std::vector<float> scratch(static_cast<size_t>(layer.k));
      std::vector<double> row(static_cast<size_t>(layer.k));
      int64_t different = 0, off = 0;
      for (int64_t n = 0; n < layer.n; ++n) {
        decode_row(stored, n, scratch.data(), row.data());
        for (int64_t k = 0; k < layer.k; ++k) {
          const double known = read_number(bytes, wanted->dtype, n * layer.k + k);
          const double ours = round_to(row[static_cast<size_t>(k)], type);
          if (ours == known) continue;
          ++off;
          if (std::abs(ours - known) <= last_places(GetParam()) * unit(known, type)) continue;
          if (++different == 1)
            ADD_FAILURE() << name << "[" << n << "," << k << "] is " << ours << ", wanted " << known;
        }
      }
      EXPECT_EQ(different, 0) << name;
      std::printf("%s: %s [%lld,%lld] %s, %s: %lld in another last place\n", GetParam().c_str(), name.c_str(),
                  static_cast<long long>(layer.n), static_cast<long long>(layer.k), scheme_name(layer.scheme).c_str(),
                  std::string(gearshift::name(layer.family)).c_str(), static_cast<long long>(off));
      compared.insert(name);
    }
  }
  for (const TensorInfo& tensor : expected->tensors()) EXPECT_TRUE(compared.contains(tensor.name)) << tensor.name;
}

INSTANTIATE_TEST_SUITE_P(Directories, Writers, ::testing::ValuesIn(directories()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace gearshift
