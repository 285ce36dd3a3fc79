// The element formats against known answers of ml_dtypes and NumPy (scripts/make_format_goldens.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "format/bf16.h"
#include "format/e2m1.h"
#include "format/e2m3.h"
#include "format/e3m2.h"
#include "format/e4m3.h"
#include "format/e5m2.h"
#include "format/e8m0.h"
#include "format/fp16.h"

namespace gearshift::format {
namespace {

struct Pair {
  const char* name;
  std::function<float(uint32_t)> decode;
  std::function<uint32_t(float)> encode;
};

class MlDtypes : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    std::ifstream file(GEARSHIFT_TEST_DATA "/format/ml_dtypes.json");
    ASSERT_TRUE(file) << "no known answers";
    golden_ = nlohmann::json::parse(file).at("formats").at(GetParam().name);
  }
  std::vector<uint32_t> words(const char* key) const { return golden_.at(key).get<std::vector<uint32_t>>(); }

 private:
  nlohmann::json golden_;
};

TEST_P(MlDtypes, Decode) {
  const std::vector<uint32_t> codes = words("codes");
  const std::vector<uint32_t> values = words("values");
  ASSERT_GE(codes.size(), 16u);
  ASSERT_EQ(codes.size(), values.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const float value = GetParam().decode(codes[i]);
    if (std::isnan(std::bit_cast<float>(values[i]))) {
      EXPECT_TRUE(std::isnan(value)) << codes[i];
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(value), values[i]) << codes[i];
    }
  }
}

TEST_P(MlDtypes, Encode) {
  const std::vector<uint32_t> inputs = words("inputs");
  const std::vector<uint32_t> encoded = words("encoded");
  ASSERT_GE(inputs.size(), 200u);
  ASSERT_EQ(inputs.size(), encoded.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto x = std::bit_cast<float>(inputs[i]);
    EXPECT_EQ(GetParam().encode(x), encoded[i]) << std::hexfloat << x;
  }
}

template <class Code>
Pair pair(const char* name, float (*decode)(Code), Code (*encode)(float)) {
  return {name, [decode](uint32_t code) { return decode(static_cast<Code>(code)); }, encode};
}

INSTANTIATE_TEST_SUITE_P(Formats, MlDtypes,
                         testing::Values(pair("e2m1", decode_e2m1, encode_e2m1), pair("e2m3", decode_e2m3, encode_e2m3),
                                         pair("e3m2", decode_e3m2, encode_e3m2), pair("e4m3", decode_e4m3, encode_e4m3),
                                         pair("e5m2", decode_e5m2, encode_e5m2), pair("bf16", decode_bf16, encode_bf16),
                                         pair("fp16", decode_fp16, encode_fp16),
                                         Pair{"e8m0",
                                              [](uint32_t code) { return decode_e8m0(static_cast<uint8_t>(code)); },
                                              [](float x) { return encode_e8m0_exponent(floor_log2(x)); }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace gearshift::format
