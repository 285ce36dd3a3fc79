// The whole way, from checkpoint files to outputs, against answers of an independent oracle (tests/data/golden; written
// with scripts/reduce_golden.py).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "gearshift/pipeline.h"
#include "prepare/bad_value.h"

namespace gearshift {
namespace {

const std::string data = GEARSHIFT_TEST_DATA "/golden/";

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(test.begin(), test.end(), '/', '_');
    directory_ = testing::TempDir() + "/golden_" + test;
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string model() const { return data + GetParam(); }
  std::string directory_;
};

TEST_P(Golden, OutputsAreTheKnownOnes) {
  const auto expected = Checkpoint::open(data + GetParam() + ".expected.safetensors");
  ASSERT_TRUE(expected.ok()) << expected.error().message();
  std::vector<TensorToWrite> inputs;
  for (const TensorInfo& tensor : expected->tensors()) {
    if (!tensor.name.ends_with(".x")) continue;
    inputs.push_back(
        {tensor.name.substr(0, tensor.name.size() - 2), tensor.dtype, tensor.shape, *expected->bytes(tensor)});
  }
  ASSERT_EQ(inputs.size(), 3u);
  const std::string input = directory_ + "/in.safetensors", output = directory_ + "/out.safetensors";
  ASSERT_TRUE(write_safetensors(input, inputs).ok());

  for (const char* backend : {"reference", "emulation", "native"}) {
    for (const auto& [dtype, tolerance] : {std::pair{"fp32", 1e-5}, {"bf16", 0x1p-8}}) {
      SCOPED_TRACE(std::string(backend) + " " + dtype);
      Options options;
      options["input"] = {{input}, "call"};
      options["output"] = {{output}, "call"};
      options["dtype"] = {{dtype}, "call"};
      options["linear-backend"] = {{backend}, "call"};
      options["arithmetic"] = {{"exact"}, "call"};
      options["threads"] = {{"2"}, "call"};
      options["isolation"] = {{"0"}, "call"};  // hundreds of runs of our own kernels
      const auto report = run_model(model(), options);
      ASSERT_TRUE(report.ok()) << report.error().message();
      EXPECT_TRUE(report->quarantined.empty());
      const auto results = Checkpoint::open(output);
      ASSERT_TRUE(results.ok());
      for (const TensorToWrite& x : inputs) {
        const TensorInfo* found = results->find(x.name);
        const TensorInfo* wanted = expected->find(x.name + ".y");
        ASSERT_NE(found, nullptr) << x.name;
        ASSERT_EQ(found->shape, wanted->shape);
        const int64_t rows = wanted->shape[0], columns = wanted->shape[1];
        for (int64_t row = 0; row < rows; ++row) {
          double error = 0, norm = 0;
          for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
            const double y = read_number(*results->bytes(*found), found->dtype, i);
            const double known = read_number(*expected->bytes(*wanted), DType::f64, i);
            error += (y - known) * (y - known);
            norm += known * known;
          }
          EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(norm)) << x.name << " row " << row;
        }
      }
    }
  }
}

// Reading headers is enough to plan; running needs the bytes.
TEST_P(Golden, HeaderAlonePlansAndDoesNotRun) {
  std::filesystem::copy_file(model() + "/config.json", directory_ + "/config.json");
  std::ifstream whole(model() + "/model.safetensors", std::ios::binary);
  uint64_t length = 0;
  whole.read(reinterpret_cast<char*>(&length), 8);
  std::string header(length + 8, '\0');
  whole.seekg(0);
  whole.read(header.data(), static_cast<std::streamsize>(header.size()));
  std::ofstream(directory_ + "/model.safetensors", std::ios::binary) << header;

  Options options;
  options["batch"] = {{"1,8"}, "call"};
  const auto plan = plan_model(directory_, options), full = plan_model(model(), options);
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(plan->hash, full->hash);
  ASSERT_TRUE(inspect_model(directory_).ok());
  for (const auto& error : {run_model(directory_, options).error(), verify_model(directory_, options).error()}) {
    EXPECT_EQ(exit_code(error.code), 4) << error.message();
  }
}

TEST_P(Golden, VerifyFindsNothingWrong) {
  Options options;
  options["batch"] = {{"1,8,16,64"}, "call"};
  options["threads"] = {{"2"}, "call"};
  size_t steps = 0;
  const auto report = verify_model(model(), options, [&](size_t, size_t, std::string_view) { ++steps; });
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_TRUE(report->quarantined.empty());
  EXPECT_GT(report->rows.size(), 20u);
  EXPECT_EQ(steps, report->plan.layers.size() + 1);
  for (const Measurement& row : report->rows)
    EXPECT_TRUE(row.comparison.ok) << row.layer << " " << row.kernel << ": " << row.comparison.failure;
}

// A fused row takes activations under its own name or under a part's, and answers under the name asked for.
TEST_P(Golden, FusedRowAndItsParts) {
  const auto expected = Checkpoint::open(data + GetParam() + ".expected.safetensors");
  ASSERT_TRUE(expected.ok());
  const TensorInfo* x = expected->find("model.layers.0.self_attn.v_proj.x");
  ASSERT_NE(x, nullptr);
  const std::string input = directory_ + "/in.safetensors", output = directory_ + "/out.safetensors";
  const std::string prefix = "model.layers.0.self_attn.";
  ASSERT_TRUE(write_safetensors(input, {{prefix + "qkv_proj", x->dtype, x->shape, *expected->bytes(*x)},
                                        {prefix + "v_proj", x->dtype, x->shape, *expected->bytes(*x)}})
                  .ok());
  Options options;
  options["input"] = {{input}, "call"};
  options["output"] = {{output}, "call"};
  const auto report = run_model(model(), options);
  ASSERT_TRUE(report.ok()) << report.error().message();
  const auto results = Checkpoint::open(output);
  ASSERT_TRUE(results.ok());
  const TensorInfo *row = results->find(prefix + "qkv_proj"), *part = results->find(prefix + "v_proj");
  ASSERT_NE(row, nullptr);
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(row->shape, (Shape{5, 256}));
  EXPECT_EQ(part->shape, (Shape{5, 64}));
  for (int64_t m = 0; m < 5; ++m) {
    for (int64_t i = 0; i < 64; ++i) {
      EXPECT_EQ(read_number(*results->bytes(*row), row->dtype, m * 256 + 192 + i),
                read_number(*results->bytes(*part), part->dtype, m * 64 + i));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, Golden, testing::Values("nvfp4_ct", "fp8_channel_ct"));

}  // namespace
}  // namespace gearshift
