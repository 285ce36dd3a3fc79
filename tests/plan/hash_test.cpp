#include "plan/hash.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

struct Hash : ::testing::Test {
  Hash() {
    fast = &stubs.add(Family::nvfp4_w4a4, "stub_fast", "native");
    stubs.add(Family::nvfp4_w4a4, "stub_floor", "reference");
    rows = {layer_of("l.0.down_proj", nvfp4_scheme(), 512, 1024), layer_of("l.1.down_proj", nvfp4_scheme(), 512, 1024)};
  }
  std::string hash(Policy policy = {}) { return plan_of(stubs, rows, std::move(policy)).value().hash; }
  StubRegistry stubs;
  Kernel* fast;
  std::vector<LayerSpec> rows;
};

TEST_F(Hash, EqualInputsGiveEqualHashes) {
  const std::string first = hash();
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(hash(), first);
}

TEST_F(Hash, IsNotOfPathsThreadsOrReasons) {
  const std::string before = hash();
  Policy threads;
  threads.threads = 7;
  EXPECT_EQ(hash(threads), before);
  stubs.line(Family::nvfp4_w4a4).why = "another reason";
  EXPECT_EQ(hash(), before);
  Plan moved = plan_of(stubs, rows).value();
  moved.model_path = "/elsewhere";
  EXPECT_EQ(decision_hash(moved), before);
}

TEST_F(Hash, IsOfEveryDecision) {
  std::set<std::string> hashes{hash()};
  const auto expect_new = [&](const char* what, const std::string& value) {
    EXPECT_TRUE(hashes.insert(value).second) << what << " does not change the hash";
  };
  fast->version = 2;
  expect_new("kernel version", hash());
  fast->layout = stubs.layout("rows16");
  expect_new("layout", hash());
  fast->contract.m.max = 16;
  expect_new("range", hash());
  fast->activation = ActivationUse::float16;
  expect_new("activation", hash());
  rows[1].name = "l.2.down_proj";
  expect_new("layer name", hash());
  rows[1].parts = {"a", "b"};
  expect_new("parts", hash());
  rows[1].n = 520;
  expect_new("shape", hash());
  rows.pop_back();
  expect_new("fewer layers", hash());

  Policy policy;
  policy.strict = true;
  expect_new("strict", hash(policy));
  policy.linear.global = "native";
  policy.strict = false;
  expect_new("backend", hash(policy));
  policy.linear.families[Family::bf16] = "native";
  expect_new("family", hash(policy));
  policy.moe.global = "native";
  expect_new("moe", hash(policy));
  policy.layers = {{"*a", "native"}};
  expect_new("layer pattern", hash(policy));
  policy.disable = {"x*"};
  expect_new("disable", hash(policy));
  policy.selection = "static";
  expect_new("selection", hash(policy));
  policy.arithmetic = Arithmetic::lossy;
  expect_new("arithmetic", hash(policy));
  policy.batch = {1};
  expect_new("batch", hash(policy));
  policy.dtype = DType::f16;
  expect_new("dtype", hash(policy));
  policy.linear = {};
  policy.force_kernel = "stub_floor";
  expect_new("forced kernel", hash(policy));
  policy.single_kernel = true;
  expect_new("single kernel", hash(policy));
}

TEST_F(Hash, FieldsDoNotRunIntoEachOther) {
  Policy one, two;
  one.disable = {"a*", "b*"};
  two.disable = {"a*b*"};
  EXPECT_NE(hash(one), hash(two));
  rows[0].parts = {"ab", "c"};
  const std::string before = hash();
  rows[0].parts = {"a", "bc"};
  EXPECT_NE(hash(), before);
}

}  // namespace
}  // namespace gearshift
