#include "gearshift/prepare.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

namespace gearshift {
namespace {

const Layout reversed{"reversed", 1, [](const LayerSpec& layer) { return layer.n * layer.k * 4 + 1; },
                      [](const LayerWeights& weights, uint8_t* out, int) {
                        const ByteView bytes = weights.parts[0].weight;
                        for (size_t i = 0; i < bytes.size(); ++i) out[i] = bytes[bytes.size() - 1 - i];
                        out[bytes.size()] = 0xAB;
                      },
                      nullptr};

Kernel stub(std::string_view name, const Layout* layout, int64_t (*workspace)(const LayerSpec&, int64_t, int)) {
  Kernel kernel;
  kernel.name = name;
  kernel.layout = layout;
  kernel.workspace_bytes = workspace;
  return kernel;
}
const Kernel packed_kernel = stub("packed", &reversed, [](const LayerSpec&, int64_t m, int) { return m * 100; });
const Kernel plain_kernel =
    stub("plain", &checkpoint_layout, [](const LayerSpec&, int64_t m, int threads) { return m * threads; });

TEST(AlignedBuffer, AlignmentAndMoves) {
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{65}, size_t{5} << 20}) {
    AlignedBuffer buffer(bytes);
    ASSERT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    if (bytes > size_t{4} << 20) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (size_t{2} << 20), 0u);
    }
    buffer.data()[bytes - 1] = 7;
    AlignedBuffer moved(std::move(buffer));
    EXPECT_EQ(moved.data()[bytes - 1], 7);
    EXPECT_EQ(buffer.size(), 0u);  // NOLINT(bugprone-use-after-move): what is left is part of the promise
    AlignedBuffer assigned(3);
    assigned = std::move(moved);
    EXPECT_EQ(assigned.data()[bytes - 1], 7);
  }
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
}

TEST(Prepare, PacksEachLayoutOnceExpertAfterExpert) {
  const std::string path = ::testing::TempDir() + "/prepare_test.safetensors";
  std::vector<std::vector<uint8_t>> bytes;
  LayerPlan plan;
  plan.layer.name = "experts.down_proj";
  plan.layer.kind = LayerKind::experts;
  plan.layer.experts = 2;
  plan.layer.n = 2;
  plan.layer.k = 3;
  std::vector<TensorToWrite> tensors;
  for (int expert = 0; expert < 2; ++expert) {
    std::vector<float> values(6);
    for (int i = 0; i < 6; ++i) values[static_cast<size_t>(i)] = static_cast<float>(expert * 10 + i);
    bytes.emplace_back(24);
    std::memcpy(bytes.back().data(), values.data(), 24);
    const std::string name = "experts." + std::to_string(expert) + ".down_proj";
    plan.layer.modules.push_back({name, 2, {{TensorRole::weight, name + ".weight", DType::f32, {2, 3}}}});
  }
  for (int expert = 0; expert < 2; ++expert) {
    tensors.push_back({plan.layer.modules[static_cast<size_t>(expert)].tensors[0].name,
                       DType::f32,
                       {2, 3},
                       bytes[static_cast<size_t>(expert)]});
  }
  ASSERT_TRUE(write_safetensors(path, tensors).ok());
  const auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.ok());

  auto decision = std::make_shared<Decision>();
  for (const auto& [min, max, kernel] :
       {std::tuple{1, 4, &packed_kernel}, {5, 8, &plain_kernel}, {9, 0, &packed_kernel}}) {
    PlannedRange range;
    range.m_min = min;
    range.m_max = max;
    range.kernel = kernel;
    decision->ranges.push_back(range);
  }
  plan.decision = decision;
  auto prepared = prepare(*checkpoint, plan, 1);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message();
  ASSERT_EQ(prepared->weights.size(), 2u);
  ASSERT_EQ(prepared->packed.size(), 1u);
  EXPECT_EQ(prepared->expert_stride(reversed), 64);
  EXPECT_EQ(prepared->packed_for(plain_kernel), nullptr);
  for (int64_t expert = 0; expert < 2; ++expert) {
    const uint8_t* packed = prepared->packed_for(packed_kernel, expert);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(packed) % 64, 0u);
    for (size_t i = 0; i < 24; ++i) EXPECT_EQ(packed[i], bytes[static_cast<size_t>(expert)][23 - i]);
    EXPECT_EQ(packed[24], 0xAB);
  }
  ASSERT_TRUE(add_layout(*prepared, reversed, 1).ok());
  ASSERT_TRUE(add_layout(*prepared, checkpoint_layout, 1).ok());
  EXPECT_EQ(prepared->packed.size(), 1u);

  // The largest need of any range that batches up to m may fall into.
  EXPECT_EQ(workspace_bytes(plan, 0, 2), 0);
  EXPECT_EQ(workspace_bytes(plan, 3, 2), 300);
  EXPECT_EQ(workspace_bytes(plan, 8, 200), 1600);
  EXPECT_EQ(workspace_bytes(plan, 9, 2), 900);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace gearshift
