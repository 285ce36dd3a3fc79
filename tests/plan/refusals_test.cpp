#include "plan/refusals.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

TEST(Strict, ListsEveryLayerGroupAtOnce) {
  StubRegistry stubs;
  stubs.add(Family::nvfp4_w4a4, "stub_fast", "native").contract.k.multiple = 256;
  stubs.add(Family::nvfp4_w4a4, "stub_other", "cutlass");
  stubs.add(Family::fp8_w8a8, "stub_fp8", "cutlass");
  std::vector<LayerSpec> rows;
  for (int i = 0; i < 6; ++i) {
    const std::string prefix = "model.layers." + std::to_string(i);
    rows.push_back(layer_of(prefix + ".self_attn.o_proj", fp8_channel_scheme(), 64, 64));
    rows.push_back(layer_of(prefix + ".self_attn.qkv_proj", fp8_channel_scheme(), 64, 64));
    rows.push_back(layer_of(prefix + ".mlp.down_proj", nvfp4_scheme(), 64, i == 2 ? 1824 : 1024));
  }
  const auto refused = plan_of(stubs, rows, strictly(prefer("native")));
  ASSERT_FALSE(refused.ok());
  const ErrorInfo& error = refused.error();
  EXPECT_EQ(error.code, ErrorCode::fallback_refused);
  ASSERT_EQ(error.details.size(), 3u) << join(error.details, "\n");
  EXPECT_TRUE(mentions(error.details[0], "model.layers.*.self_attn.o_proj (6 layers"));
  EXPECT_TRUE(mentions(error.details[0], "native has no kernel for fp8_w8a8"));
  EXPECT_TRUE(mentions(error.details[1], "model.layers.*.self_attn.qkv_proj (6 layers"));
  EXPECT_TRUE(mentions(error.details[2], "model.layers.2.mlp.down_proj"));
  EXPECT_TRUE(mentions(error.details[2], "1824"));
  EXPECT_TRUE(plan_of(stubs, rows, prefer("native")).ok());
}

TEST(Strict, NothingServedComesBeforeNothingServedAsAsked) {
  StubRegistry stubs;
  stubs.add(Family::nvfp4_w4a4, "stub_fast", "native").contract.k.multiple = 256;
  const auto refused = plan_of(stubs, {layer_of("a", nvfp4_scheme(), 64, 1824)}, strictly(prefer("cutlass")));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::no_kernel);
  EXPECT_EQ(refused.error().subject, "a");
}

TEST(NoKernel, EveryGroupWithEveryCandidatesReason) {
  StubRegistry stubs;
  stubs.add(Family::nvfp4_w4a4, "stub_one", "native").contract.k.multiple = 256;
  stubs.add(Family::nvfp4_w4a4, "stub_two", "native").contract.n.max = 32;
  const auto refused =
      plan_of(stubs, {layer_of("l.0.a", nvfp4_scheme(), 64, 1824), layer_of("l.1.a", nvfp4_scheme(), 64, 1824),
                      layer_of("l.1.b", nvfp4_scheme(), 64, 1856)});
  ASSERT_FALSE(refused.ok());
  const std::string details = join(refused.error().details, "\n");
  for (const char* words : {"l.*.a (2 layers, such as l.0.a)", "l.1.b", "stub_one", "stub_two", "1824", "1856", "32"})
    EXPECT_TRUE(mentions(details, words)) << words << " is missing in\n" << details;
  EXPECT_EQ(refused.error().details.size(), 6u);
}

}  // namespace
}  // namespace gearshift
