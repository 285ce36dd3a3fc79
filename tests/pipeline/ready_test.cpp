// After "ready" nothing is made, loaded or looked up: every launch finds what the plan prepared.
#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include "made_model.h"

namespace {
std::atomic<int64_t> allocations{0};
}

[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace gearshift {
namespace {

// FP8 in blocks of 128 x 128: fused attention and MLP, plain ones, a head; rows by 64 that are not by 128.
class ReadyTest : public MadeModel {
 protected:
  static constexpr int64_t k = 256;
  void SetUp() override {
    MadeModel::SetUp();
    std::vector<MadeTensor> tensors;
    std::mt19937 random(std::random_device{}());
    const auto add = [&](const std::string& name, int64_t n) {
      std::vector<uint8_t> codes(static_cast<size_t>(n * k));
      for (uint8_t& code : codes) code = static_cast<uint8_t>(random() & 0xB7);  // at most 1.875 * 2^-1
      tensors.push_back({name + ".weight", DType::f8_e4m3, {n, k}, codes});
      const int64_t blocks = (n + 127) / 128 * (k / 128);
      tensors.push_back({name + ".weight_scale_inv",
                         DType::f32,
                         {(n + 127) / 128, k / 128},
                         bytes_of_values(std::vector<float>(static_cast<size_t>(blocks), 0.5F))});
    };
    for (const char* part : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                             "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
      add(std::string("model.layers.0.") + part, std::string(part) == "self_attn.o_proj" ? 320 : 192);
    std::vector<float> head(static_cast<size_t>(100 * k));
    for (float& value : head) value = static_cast<float>(random() % 64) / 64;
    tensors.push_back({"lm_head.weight", DType::f32, {100, k}, bytes_of_values(head)});
    write(R"({"architectures": ["TestForCausalLM"], "quantization_config": {"quant_method": "fp8",
              "weight_block_size": [128, 128], "activation_scheme": "dynamic"}})",
          tensors);
  }
  Options with_store() const {
    Options options = this->options("1,8,33,64");
    options["store"] = {{directory_ + "/store.sqlite"}, "call"};
    return options;
  }
};

TEST_F(ReadyTest, Case76NothingIsMadeOrLoadedByTraffic) {
  auto session = Session::open(directory_, with_store());
  ASSERT_TRUE(session.ok()) << session.error().message();
  const Plan plan = session->plan().value();
  std::vector<PreparedLayer> layers;
  int64_t scratch = 0, widest = k;
  std::set<int64_t> traffic = {0};
  for (const LayerPlan& row : plan.layers) {
    auto prepared = prepare(session->checkpoint(), row, session->threads());
    ASSERT_TRUE(prepared.ok()) << prepared.error().message();
    layers.push_back(*std::move(prepared));
    widest = std::max(widest, row.layer.n);
    for (const PlannedRange& range : row.decision->ranges) {
      for (const int64_t m : {range.m_min, range.m_min + 1, range.m_max, std::max<int64_t>(range.m_min, 100)})
        if (m > 0 && m <= 200) traffic.insert(m);
    }
  }
  EXPECT_GE(layers.size(), 5u);
  for (const LayerPlan& row : plan.layers)
    for (const int64_t m : traffic)
      scratch = std::max(scratch, m == 0 ? 0 : workspace_bytes(row, m, session->threads()));
  AlignedBuffer workspace(static_cast<size_t>(scratch + 64));
  std::vector<float> x(200 * k, 0.25F), y(static_cast<size_t>(200 * widest));
  // Ready.
  const int64_t before = allocations;
  bool right = true;
  for (const PreparedLayer& layer : layers) {
    for (const int64_t m : traffic)
      right =
          gearshift::run(layer, {x.data(), DType::f32, m, k, k}, {y.data(), DType::f32, m, layer.plan->layer.n, widest},
                         workspace.span(), session->threads())
              .ok() &&
          right;
  }
  EXPECT_TRUE(right);
  EXPECT_EQ(allocations, before);
}

TEST_F(ReadyTest, Case76EveryMissAtStartHasItsReason) {
  const auto proofs = [&](const Options& options) {
    const auto report = run(options);
    EXPECT_TRUE(report.ok());
    return report->proofs;
  };
  const ProofCounts cold = proofs(with_store());
  EXPECT_EQ(cold.remembered, 0u);
  EXPECT_GT(cold.made, 0u);
  EXPECT_EQ(cold.why, (std::map<std::string, size_t>{{"never proven here", cold.made}}));
  const ProofCounts warm = proofs(with_store());
  EXPECT_EQ(warm.made, 0u);
  EXPECT_EQ(warm.remembered, cold.made);
  EXPECT_TRUE(warm.why.empty());
  Options other = with_store();
  other["threads"] = {{"1"}, "call"};
  const ProofCounts fewer = proofs(other);
  EXPECT_EQ(fewer.remembered, 0u);
  EXPECT_EQ(fewer.why.count("1 threads, proven were 2"), 1u);
}

TEST_F(ReadyTest, ResultsThatCannotBeKeptAreSaid) {
  Options options = with_store();
  options["store"] = {{"/proc/gearshift/store.sqlite"}, "call"};
  const auto ran = run(options);
  ASSERT_TRUE(ran.ok());
  ASSERT_EQ(ran->plan.notes.size(), 1u);
  EXPECT_NE(ran->plan.notes[0].find("kept for this process only"), std::string::npos) << ran->plan.notes[0];
  const auto verified = verify(options);
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(verified->plan.notes, ran->plan.notes);
}

}  // namespace
}  // namespace gearshift
