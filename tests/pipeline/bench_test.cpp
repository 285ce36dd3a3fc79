#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kernel/reference/reference.h"
#include "pipeline/bencher.h"

namespace gearshift {
namespace {

using Given = std::vector<std::pair<std::string, std::vector<std::string>>>;

Options options_of(const Given& given) {
  Options options;
  for (const auto& [name, values] : given) options[name] = {values, "command line"};
  options.try_emplace("memory-limit", OptionValue{{"20000000"}, "command line"});
  options.try_emplace("threads", OptionValue{{"1"}, "command line"});
  options.try_emplace("batch", OptionValue{{"1,3"}, "command line"});
  return options;
}

const Ceiling& ceiling(const BenchReport& report, std::string_view name) {
  for (const Ceiling& one : report.ceilings) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << "no ceiling " << name;
  return report.ceilings.front();
}

TEST(Bench, ShapesBySchemesByBatch) {
  const auto report = bench(options_of({{"shape", {"64,128", "40,256"}}, {"scheme", {"NVFP4,UNQUANTIZED"}}}));
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->rows.size(), 8U);
  EXPECT_EQ(report->plan.layers.size(), 4U);
  EXPECT_FALSE(report->plan.hash.empty());
  EXPECT_TRUE(report->stack.empty());
  for (const BenchRow& row : report->rows) {
    const Measurement& m = row.measurement;
    EXPECT_TRUE(m.comparison.ok) << m.comparison.failure;
    ASSERT_TRUE(m.timing);
    EXPECT_GE(m.timing->samples, 5);
    EXPECT_GT(row.floor_us, 0);
    EXPECT_GE(row.rotated_bytes, 6'000'000U);
    EXPECT_EQ(m.layer, "");
    if (row.floor_by == "dram") {
      EXPECT_NEAR(row.floor_us, static_cast<double>(m.weight_bytes) / ceiling(*report, "dram").value / 1e3, 1e-9);
    }
  }
  EXPECT_EQ(report->rows[0].measurement.scheme, "NVFP4");
  EXPECT_EQ(report->rows[3].measurement.scheme, "UNQUANTIZED");
  EXPECT_EQ(report->rows[4].measurement.n, 40);
  EXPECT_EQ(report->rows[1].measurement.m, 3);
}

// The reference, but for K and batch sizes that it does not take.
const Kernel& picky() {
  static const Kernel kernel = [] {
    Kernel made = reference_kernel;
    made.name = "picky";
    made.backend = "native";
    made.contract.k.multiple = 16;
    made.contract.m.max = 2;
    return made;
  }();
  return kernel;
}

// CASE-57: a refused cell says why; no other kernel is timed in its place.
TEST(Bench, Case57ForcedKernelThatIsRefused) {
  auto job = bench_job(options_of({{"shape", {"64,128", "64,100"}}}));
  ASSERT_TRUE(job.ok());
  job->settings.policy.force_kernel = "picky";
  Registry registry;
  registry.lists = {
      {Platform::cpu, Family::bf16, {{&picky(), 1, 0, "a test"}, {&reference_kernel, 1, 0, "what is left"}}}};
  const auto report = Bencher(*job, registry, nullptr).run();
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->rows.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    const BenchRow& row = report->rows[i];
    EXPECT_EQ(row.measurement.kernel, "picky");
    EXPECT_EQ(row.measurement.timing.has_value(), i == 0);
    EXPECT_EQ(row.refused.empty(), i == 0);
    EXPECT_EQ(row.floor_us > 0, i == 0);
    EXPECT_EQ(row.measurement.gbytes_per_s > 0, i == 0);
  }
  EXPECT_NE(report->rows[1].refused.find("batch 3"), std::string::npos) << report->rows[1].refused;
  EXPECT_NE(report->rows[2].refused.find("multiple of 16"), std::string::npos) << report->rows[2].refused;
  EXPECT_EQ(report->plan.layers.size(), 0U);  // nothing serves every batch size
}

TEST(Bench, Case57BackendThatDoesNotServe) {
  const Given asked = {
      {"shape", {"64,128"}}, {"family", {"nvfp4_w4a4,mxfp6"}}, {"linear-backend", {"nvfp4_w4a4=native,mxfp6=marlin"}}};
  const auto report = bench(options_of(asked));
  ASSERT_TRUE(report.ok()) << report.error().message();
  for (const BenchRow& row : report->rows) {
    const bool refused = row.measurement.family == "mxfp6";
    EXPECT_EQ(row.refused.empty(), !refused);
    EXPECT_EQ(row.measurement.backend, refused ? "marlin" : "native");
    EXPECT_EQ(row.measurement.timing.has_value(), !refused);
    if (refused) {
      EXPECT_EQ(row.measurement.kernel, "");
    }
  }
  Given strict = asked;
  strict.push_back({"strict", {"1"}});
  const auto error = bench(options_of(strict));
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.error().code, ErrorCode::fallback_refused);
}

TEST(Bench, KernelOfAnotherFamily) {
  const auto report =
      bench(options_of({{"shape", {"64,128"}}, {"family", {"int8_w8a8"}}, {"kernel", {"cpu_nvfp4_w4a4_dot"}}}));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->rows[0].refused, "cpu_nvfp4_w4a4_dot is not registered for int8_w8a8");
}

// Uniform and skewed routing, grouped and one by one, each with a floor of the experts that got tokens.
TEST(Bench, ExpertBlocks) {
  const auto report =
      bench(options_of({{"moe", {"8,2,32,64"}}, {"scheme", {"NVFP4,UNQUANTIZED"}}, {"batch", {"1,9"}}}));
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->rows.size(), 2U * 2 * 2 * 2);
  EXPECT_EQ(report->plan.layers.size(), 4U);
  for (size_t i = 0; i < report->rows.size(); ++i) {
    const BenchRow& row = report->rows[i];
    const Measurement& m = row.measurement;
    SCOPED_TRACE(m.tactic);
    EXPECT_TRUE(m.comparison.ok) << m.comparison.failure;
    ASSERT_TRUE(m.timing);
    EXPECT_EQ(m.tactic.starts_with(i % 2 == 0 ? "grouped, 8 experts, top 2, " : "one by one, 8 experts, top 2, "),
              true);
    EXPECT_NE(m.tactic.find(i / 2 % 2 == 0 ? "uniform" : "zipf"), std::string::npos);
    EXPECT_EQ(m.m, i % 8 < 4 ? 1 : 9);
    EXPECT_EQ(m.n, 32);
    EXPECT_EQ(m.k, 64);
    EXPECT_GT(row.floor_us, 0);
    EXPECT_GE(row.rotated_bytes, 6'000'000U);
  }
  // One token goes to two of eight experts.
  const BenchRow& one = report->rows[8];
  EXPECT_EQ(one.measurement.scheme, "UNQUANTIZED");
  EXPECT_EQ(one.measurement.weight_bytes, 2U * 3 * 32 * 64 * 2);
  if (one.floor_by == "dram") {
    EXPECT_NEAR(one.floor_us, 2 * 3 * 32 * 64 * 2 / ceiling(*report, "dram").value / 1e3, 1e-9);
  }
}

TEST(Bench, UsageErrors) {
  const auto message = [](const Given& given) {
    const auto report = bench(options_of(given));
    EXPECT_FALSE(report.ok());
    if (!report.ok()) {
      EXPECT_EQ(report.error().code, ErrorCode::usage);
    }
    return report.ok() ? std::string() : report.error().message();
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(message({}), "--shape N,K, --moe E,TOPK,N,K or --model DIR"));
  EXPECT_TRUE(has(message({{"moe", {"8,2,64"}}}), "'8,2,64', wanted E,TOPK,N,K"));
  EXPECT_TRUE(has(message({{"moe", {"8,9,64,64"}}}), "'9'"));
  EXPECT_TRUE(has(message({{"moe", {"8,2,64,64"}}, {"shape", {"64,64"}}}), "--shape beside it"));
  EXPECT_TRUE(has(message({{"shape", {"64"}}}), "'64', wanted N,K"));
  EXPECT_TRUE(has(message({{"shape", {"64,0"}}}), "'0'"));
  EXPECT_TRUE(has(message({{"shape", {"64,64"}}, {"model", {"x"}}}), "--model beside it"));
  EXPECT_TRUE(has(message({{"shape", {"64,64"}}, {"scheme", {"NVFP4"}}, {"family", {"bf16"}}}), "--family beside it"));
  EXPECT_TRUE(has(message({{"model", {"x"}}, {"family", {"bf16"}}}), "the model says"));
  EXPECT_TRUE(has(message({{"shape", {"64,64"}}, {"scheme", {"NVFP5"}}}), "did you mean NVFP4"));
  EXPECT_TRUE(has(message({{"shape", {"64,64"}}, {"scheme", {"a*=NVFP4"}}}), "without a pattern"));
  EXPECT_TRUE(has(message({{"shape", {"64,64"}}, {"family", {"nvfp5"}}}), "a family"));
  EXPECT_TRUE(has(message({{"shape", {"64,64"}}, {"kernel", {"cpu_nvfp4_dot"}}}), "cpu_nvfp4_w4a4_dot"));
  EXPECT_TRUE(has(message({{"shape", {"64,64"}}, {"device", {"sm_90"}}}), "a device of this machine"));
}

TEST(Bench, TheEnvironmentSpeaksOfShapesToo) {
  Options options = options_of({{"model", {"/nowhere"}}});
  options["model"].source = "environment";
  options["shape"] = {{"64", "128", "40", "256"}, "environment"};
  EXPECT_FALSE(bench(options).ok());  // both from one source
  options["shape"] = {{"64,128"}, "command line"};
  EXPECT_TRUE(bench(options).ok());
  options.erase("model");
  options["shape"] = {{"64", "128", "40", "256"}, "environment"};
  const auto job = bench_job(options);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->targets.size(), 2U);
}

// A configuration alone is enough: every class of layer once, and the sum of all.
TEST(Bench, ModelFromItsConfiguration) {
  std::string pattern = (std::filesystem::temp_directory_path() / "gearshift-bench-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::string path = pattern + "/config.json";
  std::ofstream(path) << R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","torch_dtype":"bfloat16",
    "hidden_size":64,"intermediate_size":128,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,
    "vocab_size":256,"tie_word_embeddings":false})";
  const auto report = bench(options_of({{"model", {path}}}));
  std::filesystem::remove_all(pattern);
  ASSERT_TRUE(report.ok()) << report.error().message();
  int64_t layers = 0;
  double at_one = 0;
  for (const BenchRow& row : report->rows) {
    EXPECT_FALSE(row.measurement.layer.empty());
    if (row.measurement.m != 1) continue;
    layers += row.layers;
    at_one += row.measurement.timing->median_us * static_cast<double>(row.layers);
  }
  EXPECT_EQ(layers, 3 * 4 + 1);  // qkv, o, gate_up, down; the head
  ASSERT_EQ(report->stack.size(), 2U);
  EXPECT_NEAR(report->stack[0].total_us, at_one, 1e-6);
}

}  // namespace
}  // namespace gearshift
