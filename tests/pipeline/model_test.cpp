// Layers on demand: planned as the model, proven before they are handed out, replaced where a kernel is wrong.
#include <random>
#include <thread>

#include "checkpoint/in_memory.h"
#include "float_model.h"
#include "gearshift/pipeline.h"

namespace gearshift {
namespace {

class LayersOnDemand : public FloatModel {
 protected:
  Result<Model> open(std::map<std::string, std::string> more = {}) const {
    more.emplace("dtype", "fp32");
    return Model::open(model(), options(std::move(more)));
  }
  Options with_plugin(const std::string& backend) const {
    return options({{"plugin", GEARSHIFT_TEST_PLUGINS "/stub_plugin.so"},
                    {"linear-backend", "bf16=" + backend},
                    {"launch-limit", "2"},
                    {"dtype", "fp32"}});
  }
};

// y for x of ones is the sum of a row's weights.
std::vector<double> row_sums(const ReadyLayer& ready) {
  const PartWeights& part = ready.prepared.weights.front().parts.front();
  const int64_t k = ready.plan.layers.front().layer.k;
  std::vector<double> sums(static_cast<size_t>(part.n));
  for (int64_t i = 0; i < part.n * k; ++i)
    sums[static_cast<size_t>(i / k)] += load_element(part.weight.data(), part.weight_dtype, i);
  return sums;
}

Result<std::vector<float>> run_on_ones(const ReadyLayer& ready, int64_t m) {
  const LayerPlan& plan = ready.plan.layers.front();
  const int64_t n = plan.layer.n, k = plan.layer.k;
  std::vector<float> x(static_cast<size_t>(m * k), 1.0F), y(static_cast<size_t>(m * n), NAN);
  AlignedBuffer scratch(static_cast<size_t>(workspace_bytes(plan, m, ready.threads)));
  const auto done = run(ready.prepared, {x.data(), DType::f32, m, k, k}, {y.data(), DType::f32, m, n, n},
                        scratch.span(), ready.threads);
  if (!done.ok()) return done.error();
  return y;
}

void expect_row_sums(const ReadyLayer& ready) {
  const std::vector<double> sums = row_sums(ready);
  for (const int64_t m : {1, 5, 33}) {
    const auto y = run_on_ones(ready, m);
    ASSERT_TRUE(y.ok()) << y.error().message();
    for (size_t i = 0; i < y->size(); ++i) ASSERT_NEAR((*y)[i], sums[i % sums.size()], 1e-2);
  }
}

TEST_F(LayersOnDemand, AreTheRowsOfThePlan) {
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  ASSERT_EQ(opened->plan().layers.size(), 3U);
  for (const LayerPlan& row : opened->plan().layers) {
    const auto ready = opened->load(row.layer.name);
    ASSERT_TRUE(ready.ok()) << ready.error().message();
    ASSERT_EQ((*ready)->plan.layers.size(), 1U);
    EXPECT_EQ((*ready)->plan.layers[0].layer.name, row.layer.name);
    EXPECT_EQ((*ready)->plan.layers[0].decision, row.decision);
    EXPECT_EQ((*ready)->plan.hash.size(), 32U);
    EXPECT_TRUE((*ready)->quarantined.empty());
    expect_row_sums(**ready);
  }
}

TEST_F(LayersOnDemand, OutliveTheModel) {
  std::unique_ptr<const ReadyLayer> ready;
  {
    auto opened = open();
    ASSERT_TRUE(opened.ok());
    ready = *opened->load("model.layers.0.mlp.down_proj");
  }
  expect_row_sums(*ready);
}

TEST_F(LayersOnDemand, AnUnknownNameHasNeighbours) {
  const auto opened = open();
  const auto ready = opened->load("model.layers.0.mlp.down_prj");
  ASSERT_FALSE(ready.ok());
  EXPECT_EQ(ready.error().code, ErrorCode::usage);
  EXPECT_NE(ready.error().hint.find("model.layers.0.mlp.down_proj"), std::string::npos) << ready.error().message();
}

TEST_F(LayersOnDemand, PartsOfAFusedRowStandAlone) {
  write_model({{"model.layers.0.mlp.gate_proj", 24}, {"model.layers.0.mlp.up_proj", 40}});
  const auto opened = open();
  ASSERT_EQ(opened->plan().layers.size(), 1U);
  const auto part = opened->load("model.layers.0.mlp.up_proj");
  ASSERT_TRUE(part.ok()) << part.error().message();
  EXPECT_EQ((*part)->plan.layers[0].layer.n, 40);
  expect_row_sums(**part);
  const auto fused = opened->load("model.layers.0.mlp.gate_up_proj");
  ASSERT_TRUE(fused.ok()) << fused.error().message();
  EXPECT_EQ((*fused)->plan.layers[0].layer.n, 64);
}

TEST_F(LayersOnDemand, HaveTheTypeAskedFor) {
  const auto opened = open();
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    const auto ready = opened->load("model.layers.0.self_attn.o_proj", dtype);
    ASSERT_TRUE(ready.ok()) << ready.error().message();
    EXPECT_EQ((*ready)->plan.policy.dtype, dtype);
  }
}

TEST_F(LayersOnDemand, AWrongKernelIsReplaced) {
  for (const std::string backend : {"stub_wrong_above_16", "stub_sparse_nan", "stub_crash"}) {
    std::filesystem::remove(file("store.sqlite"));
    const auto opened = Model::open(model(), with_plugin(backend));
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    const auto ready = opened->load("model.layers.0.mlp.down_proj");
    ASSERT_TRUE(ready.ok()) << ready.error().message();
    ASSERT_FALSE((*ready)->quarantined.empty()) << backend;
    EXPECT_EQ((*ready)->quarantined[0].kernel, backend);
    for (const PlannedRange& range : (*ready)->plan.layers[0].decision->ranges) {
      EXPECT_TRUE(range.kernel->name != backend || backend == "stub_wrong_above_16");
    }
    expect_row_sums(**ready);
    // The next layer of the class does not try it again.
    const auto next = opened->load("model.layers.1.mlp.down_proj");
    ASSERT_TRUE(next.ok()) << next.error().message();
    EXPECT_TRUE((*next)->quarantined.empty());
    expect_row_sums(**next);
  }
}

TEST_F(LayersOnDemand, ADeviceThatIsNotHereIsForPlansAlone) {
  const auto opened = open({{"device", "h200"}});
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  const auto ready = opened->load("model.layers.0.mlp.down_proj");
  ASSERT_FALSE(ready.ok());
  EXPECT_EQ(ready.error().code, ErrorCode::usage);
  EXPECT_NE(ready.error().found.find("not in this machine"), std::string::npos);
}

TEST_F(LayersOnDemand, ManyThreadsLoad) {
  const auto opened = open();
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(4);
  for (size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto ready = opened->load(opened->plan().layers[i % 3].layer.name, i == 3 ? DType::f16 : DType::f32);
      if (!ready.ok()) wrong[i] = ready.error().message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& message : wrong) EXPECT_EQ(message, "");
}

TEST_F(LayersOnDemand, ComeFromMemoryAsWell) {
  const auto stored = Checkpoint::open(model());
  ASSERT_TRUE(stored.ok());
  std::vector<MemoryTensor> tensors;
  for (const TensorInfo& tensor : stored->tensors())
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape, *stored->bytes(tensor)});
  const auto checkpoint = checkpoint_in_memory("made up", tensors);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
  const auto opened = Model::open(*checkpoint, options({{"dtype", "fp32"}}));
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_EQ(opened->plan().model_path, "made up");
  const auto ready = opened->load("model.layers.1.mlp.down_proj");
  ASSERT_TRUE(ready.ok()) << ready.error().message();
  expect_row_sums(**ready);
}

TEST(CheckpointInMemory, Refusals) {
  const std::vector<uint8_t> bytes(24);
  const auto refused = [](const std::vector<MemoryTensor>& tensors) {
    const auto made = checkpoint_in_memory("made up", tensors);
    return made.ok() ? ErrorInfo{} : made.error();
  };
  EXPECT_NE(refused({{"w", DType::f32, {2, 4}, bytes}}).found.find("24 bytes"), std::string::npos);
  EXPECT_EQ(refused({{"w", DType::f32, {2, 4}, bytes}}).code, ErrorCode::usage);
  EXPECT_EQ(refused({{"w", DType::f32, {-2, -3}, bytes}}).code, ErrorCode::usage);
  EXPECT_EQ(refused({{"w", DType::f32, {int64_t{1} << 62, 1 << 30}, bytes}}).code, ErrorCode::usage);
  const MemoryTensor whole{"w", DType::f32, {2, 3}, bytes};
  EXPECT_EQ(refused({whole, whole}).code, ErrorCode::usage);
  EXPECT_NE(refused({whole, whole}).message().find("\"w\""), std::string::npos);
}

}  // namespace
}  // namespace gearshift
