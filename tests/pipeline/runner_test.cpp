#include "pipeline/runner.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "kernel/reference/reference.h"
#include "pipeline/verifier.h"

namespace gearshift {
namespace {

// Right up to 16 rows; above, its last row stays unwritten.
void forgets_a_row(const RunArgs& args) {
  RunArgs fewer = args;
  if (args.x.rows > 16) fewer.x.rows = --fewer.y.rows;
  reference_kernel.run(fewer);
}
void writes_zeros(const RunArgs& args) {
  for (int64_t row = 0; row < args.y.rows; ++row) {
    std::memset(static_cast<uint8_t*>(args.y.data) + row * args.y.stride * element_bytes(args.y.dtype), 0,
                static_cast<size_t>(args.y.cols * element_bytes(args.y.dtype)));
  }
}
void wrong_in_fp16(const RunArgs& args) {
  args.x.dtype == DType::f16 ? writes_zeros(args) : reference_kernel.run(args);
}

Kernel stub(std::string_view name, void (*run)(const RunArgs&)) {
  Kernel kernel = reference_kernel;
  kernel.name = name;
  kernel.backend = "native";
  kernel.run = run;
  return kernel;
}
// Made on first use: the reference, which they copy, is a global of another file.
const Kernel& forgetful() {
  static const Kernel kernel = stub("forgetful", forgets_a_row);
  return kernel;
}
const Kernel& zeros() {
  static const Kernel kernel = stub("zeros", writes_zeros);
  return kernel;
}
const Kernel& half_wrong() {
  static const Kernel kernel = stub("half_wrong", wrong_in_fp16);
  return kernel;
}

Registry registry_of(std::vector<const Kernel*> kernels) {
  KernelList list;
  for (const Kernel* kernel : kernels) list.entries.push_back({kernel, 1, 0, "a test"});
  return {"test", {list}};
}

// Two bf16 layers of one class.
class RunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/runner_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(directory_);
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<uint8_t> bytes(static_cast<size_t>(n * k * 2));
    for (int64_t i = 0; i < n * k; ++i) store_element(bytes.data(), DType::bf16, i, normal(random));
    std::vector<TensorToWrite> tensors;
    for (const char* layer : {"0", "1"}) {
      tensors.push_back({std::string("model.layers.") + layer + ".mlp.down_proj.weight", DType::bf16, {n, k}, bytes});
    }
    ASSERT_TRUE(write_safetensors(model(), tensors).ok());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string model() const { return directory_ + "/model.safetensors"; }
  std::string file(const std::string& name) const { return directory_ + "/" + name; }
  Options options(const std::string& batch = "1,40") const {
    Options options;
    options["batch"] = {{batch}, "call"};
    options["threads"] = {{"2"}, "call"};
    return options;
  }
  Result<RunReport> run(const Registry& registry, const Options& options) const {
    auto session = Session::open(model(), options);
    if (!session.ok()) return session.error();
    return Runner(*session, registry, nullptr).run();
  }
  void write_input(const std::string& name, const std::string& tensor, DType dtype, Shape shape,
                   const std::vector<uint8_t>& bytes) const {
    ASSERT_TRUE(write_safetensors(file(name), {{tensor, dtype, std::move(shape), bytes}}).ok());
  }

  static constexpr int64_t n = 24, k = 64;
  std::string directory_;
};

TEST_F(RunnerTest, HealthyKernelRunsEverything) {
  const auto report = run(registry_of({&reference_kernel}), options());
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->rows.size(), 4u);
  EXPECT_TRUE(report->quarantined.empty());
  for (const Measurement& row : report->rows) {
    EXPECT_TRUE(row.comparison.ok);
    EXPECT_EQ(row.scheme, "UNQUANTIZED");
    ASSERT_TRUE(row.timing);
    EXPECT_GT(row.timing->median_us, 0);
    EXPECT_GT(row.gbytes_per_s, 0);
  }
  ASSERT_EQ(report->stack.size(), 2u);
  EXPECT_EQ(report->stack[0].m, 1);
  EXPECT_DOUBLE_EQ(report->stack[0].total_us, report->rows[0].timing->median_us + report->rows[2].timing->median_us);
  EXPECT_EQ(report->stack[0].share_by_family, (std::vector<std::pair<std::string, double>>{{"bf16", 1.0}}));
}

TEST_F(RunnerTest, WrongKernelIsQuarantinedAndTheNextOneRuns) {
  const auto report = run(registry_of({&zeros(), &forgetful(), &reference_kernel}), options());
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->quarantined.size(), 2u);
  EXPECT_EQ(report->quarantined[0].kernel, "zeros");
  EXPECT_EQ(report->quarantined[1].kernel, "forgetful");
  EXPECT_NE(report->quarantined[1].reason.find("not written"), std::string::npos) << report->quarantined[1].reason;
  EXPECT_EQ(report->quarantined[0].dtype, "BF16");
  for (const Measurement& row : report->rows) {
    EXPECT_EQ(row.kernel, reference_kernel.name);
    EXPECT_TRUE(row.comparison.ok);
  }
  EXPECT_TRUE(std::any_of(report->plan.warnings.begin(), report->plan.warnings.end(),
                          [](const Warning& warning) { return warning.code == "quarantined"; }));
}

TEST_F(RunnerTest, NothingHealthyLeftStopsTheRun) {
  const auto report = run(registry_of({&zeros()}), options());
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(exit_code(report.error().code), 5);
  std::string text = report.error().message();
  for (const std::string& detail : report.error().details) text += "\n" + detail;
  EXPECT_NE(text.find("zeros"), std::string::npos) << text;
}

TEST_F(RunnerTest, Case07QuarantineConcernsOneActivationType) {
  Options half = options();
  half["dtype"] = {{"fp16"}, "call"};
  const auto registry = registry_of({&half_wrong(), &reference_kernel});
  const auto wrong = run(registry, half);
  ASSERT_TRUE(wrong.ok()) << wrong.error().message();
  ASSERT_EQ(wrong->quarantined.size(), 1u);
  EXPECT_EQ(wrong->quarantined[0].dtype, "F16");

  auto session = Session::open(model(), options());
  ASSERT_TRUE(session.ok());
  session->store.quarantines = wrong->quarantined;
  const auto plan = session->plan(registry);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->layers[0].decision->ranges[0].kernel, &half_wrong());
}

TEST_F(RunnerTest, VerifyProvesEveryPairAndKeepsGoing) {
  auto session = Session::open(model(), options());
  ASSERT_TRUE(session.ok());
  const Registry registry = registry_of({&zeros(), &reference_kernel});
  const auto report = Verifier(*session, registry, nullptr).run();
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->quarantined.size(), 1u);
  EXPECT_EQ(report->quarantined[0].kernel, "zeros");
  for (const Measurement& row : report->rows)
    EXPECT_EQ(row.comparison.ok, row.kernel != "zeros") << row.kernel << " m " << row.m;
  EXPECT_EQ(report->plan.layers[0].decision->ranges[0].kernel, &reference_kernel);
}

TEST_F(RunnerTest, InputAndOutput) {
  const int64_t m = 3;
  std::vector<uint8_t> x(static_cast<size_t>(m * k * 8));
  for (int64_t i = 0; i < m * k; ++i) {
    const double value = static_cast<double>(i % 7) - 3;
    std::memcpy(x.data() + i * 8, &value, 8);
  }
  write_input("in.safetensors", "x", DType::f64, {m, k}, x);
  Options with_files = options();
  with_files.erase("batch");
  with_files["input"] = {{file("in.safetensors")}, "call"};
  with_files["output"] = {{file("out.safetensors")}, "call"};
  with_files["dtype"] = {{"fp32"}, "call"};
  const auto report = run(registry_of({&reference_kernel}), with_files);
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->rows.size(), 2u);
  EXPECT_EQ(report->rows[0].m, m);
  EXPECT_EQ(report->plan.policy.batch, (std::vector<int64_t>{m}));
  const auto out = Checkpoint::open(file("out.safetensors"));
  ASSERT_TRUE(out.ok()) << out.error().message();
  ASSERT_EQ(out->tensors().size(), 2u);
  const TensorInfo* y = out->find("model.layers.1.mlp.down_proj");
  ASSERT_NE(y, nullptr);
  EXPECT_EQ(y->dtype, DType::f32);
  EXPECT_EQ(y->shape, (Shape{m, n}));
}

TEST_F(RunnerTest, EmptyInput) {
  write_input("in.safetensors", "model.layers.1.mlp.down_proj", DType::f32, {0, k}, {});
  Options with_files = options();
  with_files["input"] = {{file("in.safetensors")}, "call"};
  with_files["output"] = {{file("out.safetensors")}, "call"};
  const auto report = run(registry_of({&reference_kernel}), with_files);
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->not_run.size(), 1u);
  EXPECT_NE(report->not_run[0].find("model.layers.0"), std::string::npos);
  const auto out = Checkpoint::open(file("out.safetensors"));
  ASSERT_TRUE(out.ok()) << out.error().message();
  EXPECT_EQ(out->find("model.layers.1.mlp.down_proj")->shape, (Shape{0, n}));
}

TEST_F(RunnerTest, WrongInputsAreUsageErrors) {
  const std::vector<uint8_t> zeros_of(static_cast<size_t>(2 * k * 4), 0);
  std::vector<uint8_t> nan = zeros_of;
  nan[4 * 70 + 2] = 0xC0, nan[4 * 70 + 3] = 0x7F;
  const std::vector<std::tuple<std::string, DType, Shape, std::vector<uint8_t>, std::string>> wrong = {
      {"x",
       DType::f32,
       {2, k - 1},
       {zeros_of.begin(), zeros_of.end() - 8},
       "[M,64] for layer model.layers.0.mlp.down_proj"},
      {"x", DType::f32, {2 * k}, zeros_of, "[M,K]"},
      {"x", DType::i32, {2, k}, zeros_of, "I32"},
      {"x", DType::f32, {2, k}, nan, "nan at row 1, column 6"},
      {"model.layers.1.mlp.down_prj", DType::f32, {2, k}, zeros_of, "model.layers.1.mlp.down_proj"}};
  for (const auto& [tensor, dtype, shape, bytes, word] : wrong) {
    write_input("in.safetensors", tensor, dtype, shape, bytes);
    Options with_files = options();
    with_files["input"] = {{file("in.safetensors")}, "call"};
    const auto report = run(registry_of({&reference_kernel}), with_files);
    ASSERT_FALSE(report.ok()) << word;
    EXPECT_EQ(exit_code(report.error().code), 2);
    EXPECT_NE(report.error().message().find(word), std::string::npos) << report.error().message();
  }
  Options missing = options();
  missing["input"] = {{file("none.safetensors")}, "call"};
  EXPECT_EQ(exit_code(run(registry_of({&reference_kernel}), missing).error().code), 2);
  Options many = options("1,2");
  many["output"] = {{file("out.safetensors")}, "call"};
  EXPECT_EQ(run(registry_of({&reference_kernel}), many).error().subject, "--output");
  Options absent = options();
  absent["device"] = {{"sm_90"}, "call"};
  const auto elsewhere = run_model(model(), absent);
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(exit_code(elsewhere.error().code), 2);
  EXPECT_NE(elsewhere.error().message().find("sm_90"), std::string::npos);
}

TEST_F(RunnerTest, LayersFilterAndNames) {
  Options one = options();
  one["layers"] = {{"*.1.*"}, "call"};
  EXPECT_EQ(plan_model(model(), one)->layers.size(), 1u);
  one["layers"] = {{"*.7.*"}, "call"};
  const auto empty = plan_model(model(), one);
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->unused, (std::vector<std::string>{"*.7.*"}));
  one["layers"] = {{"model.layers.1.mlp.down_prj"}, "call"};
  const auto unknown = plan_model(model(), one);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(exit_code(unknown.error().code), 2);
  EXPECT_NE(unknown.error().hint.find("model.layers.1.mlp.down_proj"), std::string::npos);
  one.erase("layers");
  one["explain"] = {{"nothing"}, "call"};
  EXPECT_EQ(exit_code(plan_model(model(), one).error().code), 2);
}

TEST(Doctor, LaunchTestsPass) {
  Options options;
  options["threads"] = {{"2"}, "call"};
  const auto report = doctor(options);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_FALSE(report->launch_tests.empty());
  for (const LaunchTest& test : report->launch_tests) EXPECT_TRUE(test.ok) << test.kernel << ": " << test.note;
  EXPECT_FALSE(report->build.empty());
  EXPECT_EQ(report->options.at("threads").source, "call");
}

TEST(Kernels, EachOnceWithAReason) {
  const auto host = host_cpu();
  ASSERT_TRUE(host.ok());
  std::set<const Kernel*> seen;
  for (const KernelRow& row : list_kernels(*host)) {
    EXPECT_TRUE(seen.insert(row.kernel).second) << row.kernel->name;
    EXPECT_FALSE(row.reason.empty()) << row.kernel->name;
  }
  const auto portable = host_cpu("portable");
  ASSERT_TRUE(portable.ok());
  for (const KernelRow& row : list_kernels(*portable)) {
    if (row.kernel->platform == Platform::cpu) {
      EXPECT_EQ(row.runnable, row.kernel->contract.isa == Isa::portable) << row.kernel->name;
    } else if (cuda_devices().empty()) {
      EXPECT_FALSE(row.runnable) << row.kernel->name;
    }
  }
}

}  // namespace
}  // namespace gearshift
