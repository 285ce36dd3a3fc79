#include "report/texts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "report/choices.h"
#include "report/progress.h"
#include "report/sample.h"
#include "report/table.h"
#include "report/usage.h"
#include "report/widest.h"

namespace gearshift {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Words of `text` without line breaks, so that wrapping does not matter.
std::string flat(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\n') c = ' ';
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  }
  return out;
}

RunReport sample_run() {
  RunReport report;
  report.plan = test::sample_plan();
  for (const LayerPlan& row : report.plan.layers) {
    for (int64_t m : {1, 8, 256}) report.rows.push_back(test::sample_row(row, m, true));
  }
  report.stack = {{1, 100.5, {{"nvfp4_w4a4", 0.75}, {"bf16", 0.25}}},
                  {256, 25000, {{"nvfp4_w4a4", 0.5}, {"bf16", 0.5}}}};
  return report;
}

TEST(LayerGroupsTest, NumbersBecomeStars) {
  EXPECT_EQ(role_pattern("model.layers.12.mlp.experts.3.w1"), "model.layers.*.mlp.experts.*.w1");
  EXPECT_EQ(role_pattern("layer1.conv2"), "layer1.conv2");
  EXPECT_EQ(role_pattern("0"), "*");
  EXPECT_EQ(role_pattern(""), "");
  EXPECT_EQ(role_pattern("a..1."), "a..*.");
}

TEST(LayerGroupsTest, SameRoleShapeSchemeAndKernelsAreOneGroup) {
  Plan plan = test::sample_plan();
  auto groups = group_layers(plan);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].pattern, "model.layers.*.up");
  EXPECT_EQ(groups[0].layers.size(), 2U);
  EXPECT_EQ(groups[0].weight_bytes, 2 * 331776U);
  EXPECT_EQ(groups[1].pattern, "model.head");
  plan.layers[1].layer.k = 768;
  groups = group_layers(plan);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].pattern, "model.layers.0.up");
  plan.layers[1].layer.k = 384;
  plan.layers[1].decision = plan.layers[2].decision;
  EXPECT_EQ(group_layers(plan).size(), 3U);
}

TEST(TextsTest, PlanNamesKernelsRangesAndWarnings) {
  const std::string text = plan_text(test::sample_plan(), 140);
  for (const char* part : {"model.layers.*.up", "1536 x 384", "NVFP4", "1-16", "17-", "fast_decode", "slow_all",
                           "measured", "UNQUANTIZED", "backend_not_covered: native has no kernel for bf16",
                           "only the slow path is left", "model.embed_tokens", "0123456789abcdef"}) {
    EXPECT_TRUE(has(flat(text), part)) << part << "\n" << text;
  }
}

TEST(TextsTest, RunTellsTheWholeStory) {
  RunReport report = sample_run();
  const std::string text = run_text(report, 120);
  for (const char* part : {"model.layers.*.up: 2 layers of 1536 x 384, NVFP4", "fast_decode", "first in the list",
                           "measured", "12.3 us", "26.5", "3.0e-04", "native, which was asked for, does not serve it",
                           "all layers", "nvfp4_w4a4 75 %", "9 of 9 checks", "warnings"}) {
    EXPECT_TRUE(has(flat(text), part)) << part << "\n" << text;
  }
  EXPECT_FALSE(has(text, "FAIL"));
  report.rows[0].comparison.ok = false;
  EXPECT_TRUE(has(run_text(report, 120), "FAIL"));
  EXPECT_TRUE(has(run_text(report, 120), "8 of 9 checks"));
}

TEST(TextsTest, RunSaysWhatWasNotRun) {
  RunReport report = sample_run();
  report.rows.clear();
  report.not_run = {"model.layers.0.experts: expert layers are planned only"};
  EXPECT_TRUE(has(run_text(report, 100), "expert layers are planned only"));
}

TEST(TextsTest, VerifyNamesTheFailure) {
  VerifyReport report;
  report.plan = test::sample_plan();
  report.rows = {test::sample_row(report.plan.layers[0], 1, true), test::sample_row(report.plan.layers[0], 8, false)};
  report.quarantined = {{"fast_decode", 1, "class", "BF16", 1, 16, "row 3 is off"}};
  const std::string text = verify_text(report, 120);
  EXPECT_TRUE(has(text, "FAIL"));
  EXPECT_TRUE(has(flat(text), "fast_decode on model.layers.0.up, batch 8: row 3, column 7"));
  EXPECT_TRUE(has(flat(text), "fast_decode, batch 1-16"));
  EXPECT_TRUE(has(text, "1 of 2 checks"));
}

TEST(TextsTest, BenchShowsRatiosAndRefusals) {
  const Plan plan = test::sample_plan();
  BenchReport report = test::sample_bench(plan, test::sample_row(plan.layers[0], 1, true));
  const std::string text = bench_text(report, 120);
  for (const char* part :
       {"vpdpbusd zmm", "1600", "dram 54 %", "12.3 us", "1536 x 384 nvfp4_w4a4", "28 layers", "copies of 1.07 GB",
        "batch 16, fast_decode: refused: K 100 is not a multiple of 16", "the machine does other work",
        "batch 1: 371 us (nvfp4_w4a4 100 %)", "each on a core of its own; plan 0123456789abcdef"}) {
    EXPECT_TRUE(has(flat(text), part)) << part << "\n" << text;
  }
  EXPECT_FALSE(has(text, "FAIL"));
  report.rows[0].measurement.comparison.ok = false;
  report.rows[0].measurement.comparison.failure = "row 3, column 7: 1 instead of 2";
  report.rows[0].measurement.timing.reset();
  EXPECT_TRUE(has(bench_text(report, 120), "FAIL"));
  EXPECT_TRUE(has(flat(bench_text(report, 120)), "row 3, column 7: 1 instead of 2"));
}

TEST(TextsTest, ExplainShowsEveryCandidate) {
  const auto text = explain_text(test::sample_plan(), "model.head", 120);
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(has(flat(*text), "weight_formats is float, wanted e2m1: reads e2m1 weights only")) << *text;
  EXPECT_TRUE(has(*text, "rejected"));
  EXPECT_TRUE(has(*text, "slow_all"));
}

TEST(TextsTest, ExplainFindsPartsAndPatterns) {
  EXPECT_TRUE(has(*explain_text(test::sample_plan(), "model.layers.1.up.b", 120), "model.layers.1.up:"));
  const std::string both = *explain_text(test::sample_plan(), "*.up", 120);
  EXPECT_TRUE(has(both, "model.layers.*.up")) << both;
  EXPECT_TRUE(has(flat(both), "batch 1-16: fast_decode (static, activations nvfp4; first in the list)")) << both;
}

TEST(TextsTest, ExplainSaysWhatWouldHaveToChange) {
  Plan plan = test::sample_plan();
  auto decision = std::make_shared<Decision>(*plan.layers[2].decision);
  decision->fallback.reset();
  const auto text_with = [&](Verdict verdict) {
    decision->candidates[0] = std::move(verdict);
    plan.layers[2].decision = decision;
    return flat(*explain_text(plan, "model.head", 200));
  };
  const Kernel* fast = &test::sample_kernel(0);
  const auto rejected = [&](Stage stage, const char* field, const char* found, const char* wanted) {
    return text_with({fast, VerdictKind::rejected, stage, field, found, wanted, "why"});
  };
  EXPECT_TRUE(has(text_with({fast, VerdictKind::eligible, Stage::rank, "", "", "", "why"}),
                  "to get it: --linear-backend " + std::string(fast->backend)));
  EXPECT_TRUE(
      has(rejected(Stage::layer, "k", "1824", "a multiple of 256"), "it needs k: a multiple of 256 instead of 1824"));
  EXPECT_TRUE(has(rejected(Stage::device, "isa", "avx2", "avx512"), "it needs a device with isa avx512"));
  EXPECT_TRUE(has(rejected(Stage::build, "", "", ""), "it needs a build that has it"));
  EXPECT_TRUE(has(rejected(Stage::policy, "disable", "fast*", ""), "it needs no --disable fast*"));
  EXPECT_TRUE(has(rejected(Stage::policy, "arithmetic", "bf16", "nvfp4"), "it needs --arithmetic higher"));
  EXPECT_TRUE(has(rejected(Stage::self_check, "m", "every M", ""), "gearshift verify"));
}

TEST(TextsTest, ExplainShowsWhereOptionsComeFrom) {
  Plan plan = test::sample_plan();
  plan.origins = {{"batch", "1,256", "gearshift.toml:3: batch"}, {"strict", "1", "environment"}};
  const std::string text = flat(*explain_text(plan, "model.head", 100));
  EXPECT_TRUE(has(text, "batch = 1,256 (gearshift.toml:3: batch); strict = 1 (environment)")) << text;
}

// 900 rows of a mixed model in 45 groups: what runs and why fits two screens of 80 x 50.
TEST(TextsTest, TheWorstModelFitsTwoScreens) {
  Plan plan = test::sample_plan();
  const std::vector<LayerPlan> samples = plan.layers;
  plan.layers.clear();
  for (int row = 0; row < 900; ++row) {
    LayerPlan copy = samples[static_cast<size_t>(row) % samples.size()];
    copy.layer.name = "model.language_model.layers." + std::to_string(row / 45) + ".mlp.experts.role" +
                      std::to_string(row % 45) + "_proj";
    plan.layers.push_back(std::move(copy));
  }
  for (const std::string& text : {plan_text(plan, 80), *explain_text(plan, "*", 80)}) {
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 100) << text;
    for (const LayerGroup& group : group_layers(plan))
      EXPECT_TRUE(has(text, group.pattern.substr(group.pattern.size() - 8))) << group.pattern;
  }
}

TEST(TextsTest, LettersGoOnBehindZ) {
  EXPECT_EQ(letters(0), "A");
  EXPECT_EQ(letters(25), "Z");
  EXPECT_EQ(letters(26), "AA");
  EXPECT_EQ(letters(26 * 27), "AAA");
}

TEST(TextsTest, ExplainOfAnUnknownNameSuggestsNearOnes) {
  const auto text = explain_text(test::sample_plan(), "model.layers.0.upp", 120);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::usage);
  EXPECT_TRUE(has(text.error().hint, "model.layers.0.up"));
  EXPECT_FALSE(text.error().details.empty());
}

TEST(TextsTest, EveryTextFitsEveryWidth) {
  const RunReport run = sample_run();
  VerifyReport verify;
  verify.plan = run.plan;
  verify.rows = run.rows;
  InspectReport inspect;
  inspect.path = "/models/tiny";
  inspect.files = {{"model.safetensors", true}};
  inspect.tensors = {{"model.layers.0.up.weight_packed", DType::u8, {1536, 192}, 0, 0, 294912}};
  inspect.layers = {test::nvfp4_layer("model.layers.0.up"), test::float_layer("model.head")};
  QuantizeReport quantize;
  quantize.layers = {{"model.layers.0.up", "NVFP4", 1536, 384, 0.1, 0.99, 0.2, 1179648, 331776}};
  DoctorReport doctor;
  doctor.launch_tests = {{"fast_decode", true, "relative error 1e-6"}};
  doctor.options = {{"batch", {{"1,8,16,64,256,1024,4096"}, "default", ""}}};
  const std::vector<KernelRow> kernels = {
      {&test::sample_kernel(0), 1, 16, true, "first in its list because it reads four bits"}};
  for (size_t width = 40; width <= 200; width += 5) {
    for (const std::string& text :
         {plan_text(run.plan, width), run_text(run, width), verify_text(verify, width), inspect_text(inspect, width),
          kernels_text(kernels, width), devices_text(known_devices(run.plan.device), width), doctor_text(doctor, width),
          quantize_text(quantize, width), bench_text(test::sample_bench(run.plan, run.rows[0]), width),
          *explain_text(run.plan, "*", width)}) {
      ASSERT_LE(widest(text), width) << text;
    }
  }
}

TEST(TextsTest, HostileNamesDoNotReachTheTerminal) {
  RunReport report = sample_run();
  report.plan.layers[0].layer.name = "a\x1b[2Jb\nc";
  report.plan.model_path = "\x1b]0;x\x07";
  report.plan.warnings[0].message = "\x1b[31m";
  for (const std::string& text : {plan_text(report.plan, 100), run_text(report, 100)}) EXPECT_FALSE(has(text, "\x1b"));
}

TEST(UsageTest, ErrorsAreOneLineWithAnIndentedList) {
  const std::string text =
      error_lines({ErrorCode::usage, "--batch", "'0'", "a whole number", "try 1", {"first\nline", "second"}});
  EXPECT_EQ(text, "gearshift: error: --batch: found '0', wanted a whole number (try 1)\n  first\\nline\n  second\n");
}

TEST(ProgressTest, Line) {
  EXPECT_EQ(progress_line(12, 24, "model.layers.3", 80), "[##########..........] 12/24 model.layers.3");
  EXPECT_EQ(progress_line(0, 0, "", 80), "[####################] 0/0 ");
  EXPECT_EQ(progress_line(6, 24, "a", 80, 3), "[#####...............] 6/24, 9 s left, a");
  EXPECT_EQ(progress_line(6, 24, "a", 80, 1.5), "[#####...............] 6/24 a");
  EXPECT_EQ(progress_line(6, 24, "a", 80, 600), "[#####...............] 6/24, 30 min left, a");
  EXPECT_EQ(progress_line(24, 24, "", 80, 600), "[####################] 24/24 ");
  EXPECT_LE(display_width(progress_line(5, 7, std::string(300, 'x'), 40)), 40U);
}

TEST(ProgressTest, SilentWhereThereIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    ProgressBar bar(file, true);
    EXPECT_FALSE(bar.active());
    bar.update(1, 2, "x");
  }
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace gearshift
