// Every preset against the Python library: tests/data/quantize holds float weights and what compressed-tensors wrote
// for them (scripts/make_quantize_golden.py). Codes and scales must be the same bits.
#include "quantize/fixture.h"

namespace gearshift {
namespace {

class Golden : public QuantizeTest, public testing::WithParamInterface<const char*> {};

TEST_P(Golden, CodesAndScalesAreThoseOfTheLibrary) {
  const std::string preset = GetParam();
  const std::string source = golden(preset == "FP8_BLOCK" ? "model_block" : "model");
  const auto report = quantize(request(source, {{"", preset}}));
  ASSERT_TRUE(report.ok()) << report.error().message();
  Checkpoint ours = Checkpoint::open(out()).value();
  Checkpoint library = Checkpoint::open(golden(preset + ".safetensors")).value();
  ASSERT_FALSE(library.tensors().empty());
  for (const TensorInfo& wanted : library.tensors()) {
    const TensorInfo* tensor = ours.find(wanted.name);
    ASSERT_NE(tensor, nullptr) << wanted.name;
    EXPECT_EQ(tensor->dtype, wanted.dtype) << wanted.name;
    EXPECT_EQ(tensor->shape, wanted.shape) << wanted.name;
    const ByteView a = ours.bytes(*tensor).value(), b = library.bytes(wanted).value();
    ASSERT_EQ(a.size(), b.size()) << wanted.name;
    for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(int(a[i]), int(b[i])) << wanted.name << " byte " << i;
  }
  // Nothing beyond these and what was float already.
  Checkpoint model = Checkpoint::open(source).value();
  size_t left = 0;
  for (const TensorInfo& tensor : model.tensors()) left += tensor.shape.size() == 1 ? 1 : 0;
  EXPECT_EQ(ours.tensors().size(), library.tensors().size() + left);
}

INSTANTIATE_TEST_SUITE_P(Presets, Golden,
                         testing::Values("NVFP4", "NVFP4A16", "FP8_DYNAMIC", "FP8", "FP8_BLOCK", "INT8", "W4A16",
                                         "W4A16_ASYM", "MXFP4", "MXFP8"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace gearshift
