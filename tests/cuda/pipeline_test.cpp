// The verbs on a device: a small checkpoint of several schemes is planned, run, verified and tuned where the GPU is.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "gearshift/pipeline.h"
#include "pipeline/float_model.h"

namespace gearshift {
namespace {

class OnCuda : public FloatModel {
 protected:
  void SetUp() override {
    FloatModel::SetUp();
    write_model({{"model.layers.0.mlp.down_proj", 256},
                 {"model.layers.0.mlp.up_proj", 320},
                 {"model.layers.0.self_attn.o_proj", 128},
                 {"model.layers.1.self_attn.o_proj", 144}},
                256);
    Options quantize;
    quantize["scheme"] = {{"*down_proj=NVFP4", "*up_proj=FP8_DYNAMIC", "*0.self_attn*=W4A16", "*1.self_attn*=INT8"},
                          "call"};
    quantize["out"] = {{file("quantized")}, "call"};
    const auto written = quantize_model(model(), quantize);
    ASSERT_TRUE(written.ok()) << written.error().message();
  }
  std::string quantized() const { return file("quantized"); }
  Options on_cuda(std::map<std::string, std::string> more = {}) const {
    more.emplace("device", "cuda");
    more.emplace("dtype", "bf16");
    return options(std::move(more));
  }
};

TEST_F(OnCuda, RunAndVerifyAreRight) {
  const auto ran = run_model(quantized(), on_cuda());
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  EXPECT_TRUE(ran->quarantined.empty());
  EXPECT_EQ(ran->rows.size(), 12u);
  for (const Measurement& row : ran->rows) {
    EXPECT_TRUE(row.comparison.ok) << row.layer << " " << row.kernel << ": " << row.comparison.failure;
    EXPECT_NE(row.backend, "reference") << row.layer;
    EXPECT_TRUE(row.timing.has_value()) << row.layer;
  }
  const auto verified = verify_model(quantized(), on_cuda());
  ASSERT_TRUE(verified.ok()) << verified.error().message();
  EXPECT_TRUE(verified->quarantined.empty());
  for (const Measurement& row : verified->rows)
    EXPECT_TRUE(row.comparison.ok) << row.layer << " " << row.kernel << ": " << row.comparison.failure;
}

TEST_F(OnCuda, TuneMeasuresAndKeepsInBothModes) {
  for (const char* mode : {"graph", "eager"}) {
    const auto tuned = tune_model(quantized(), on_cuda({{"mode", mode}}));
    ASSERT_TRUE(tuned.ok()) << tuned.error().message();
    EXPECT_GT(tuned->measured, 0u) << mode;
    EXPECT_TRUE(tuned->quarantined.empty());
    for (const TunedRow& row : tuned->rows) {
      ASSERT_TRUE(row.measurement.timing.has_value());
      EXPECT_GT(row.measurement.timing->median_us, 0);
    }
    EXPECT_GE(tuned->oracle_gap, 1);
    const auto again = tune_model(quantized(), on_cuda({{"mode", mode}}));
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(again->measured, 0u) << mode << ": what is known is not measured again";
  }
}

TEST_F(OnCuda, BenchHasCeilingsAndFloors) {
  Options request = on_cuda({{"family", "fp8_w8a8"}, {"batch", "1,64"}});
  request["shape"] = {{"512,1024"}, "call"};
  const auto report = bench(request);
  ASSERT_TRUE(report.ok()) << report.error().message();
  std::set<std::string> ceilings;
  for (const Ceiling& ceiling : report->ceilings) {
    EXPECT_GT(ceiling.value, 0) << ceiling.name;
    ceilings.insert(ceiling.name);
  }
  EXPECT_TRUE(ceilings.count("dram") == 1 && ceilings.count("read start") == 1 && ceilings.count("bf16") == 1);
  ASSERT_EQ(report->rows.size(), 2u);
  for (const BenchRow& row : report->rows) {
    EXPECT_TRUE(row.measurement.comparison.ok) << row.measurement.kernel << row.measurement.comparison.failure;
    ASSERT_TRUE(row.measurement.timing.has_value()) << row.refused;
    EXPECT_GT(row.floor_us, 0);
    EXPECT_LT(row.floor_us, row.measurement.timing->median_us * 1.02);
  }
}

}  // namespace
}  // namespace gearshift
