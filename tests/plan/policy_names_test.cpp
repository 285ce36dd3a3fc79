#include "plan/policy_names.h"

#include <gtest/gtest.h>

#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

class PolicyNames : public ::testing::Test {
 protected:
  PolicyNames() { stubs_.add(Family::bf16, "stub_kernel", "stub_backend"); }
  ErrorInfo refused(const Policy& policy) {
    const Result<Policy> result = checked_policy(policy, stubs_.registry());
    EXPECT_FALSE(result.ok());
    if (result.ok()) return {};
    EXPECT_EQ(result.error().code, ErrorCode::usage);
    return result.error();
  }
  bool accepted(const Policy& policy) { return checked_policy(policy, stubs_.registry()).ok(); }

 private:
  StubRegistry stubs_;
};

TEST_F(PolicyNames, UnknownBackendsNameTheNearAndTheValidOnes) {
  const ErrorInfo error = refused(prefer("stub_bakend"));
  EXPECT_EQ(error.subject, "--linear-backend");
  EXPECT_TRUE(mentions(error.found, "stub_bakend"));
  EXPECT_TRUE(mentions(error.hint, "stub_backend")) << error.hint;
  EXPECT_TRUE(mentions(error.wanted, "auto")) << error.wanted;
  EXPECT_TRUE(mentions(error.wanted, "stub_backend")) << error.wanted;

  Policy policy;
  policy.linear.families[Family::bf16] = "nowhere";
  EXPECT_EQ(refused(policy).subject, "--linear-backend");
  policy = {};
  policy.moe.global = "nowhere";
  EXPECT_EQ(refused(policy).subject, "--moe-backend");
  policy = {};
  policy.layers = {{"*q*", "nowhere"}};
  EXPECT_EQ(refused(policy).subject, "--layer *q*");
}

TEST_F(PolicyNames, BackendsOfBothRegistriesAreKnown) {
  EXPECT_TRUE(accepted(prefer("stub_backend")));
  EXPECT_TRUE(accepted(prefer("auto")));
  for (std::string_view backend : known_backends()) EXPECT_TRUE(accepted(prefer(std::string(backend)))) << backend;
}

TEST_F(PolicyNames, DisabledNamesExistPatternsNeedNot) {
  Policy policy;
  policy.disable = {"stub_kernel", "stub_backend", "bf16", "fp8_w8a8", "marlin", "nothing*"};
  EXPECT_TRUE(accepted(policy));
  for (const char* wrong : {"stub_kernl", "", "auto", "STUB_KERNEL"}) {
    policy.disable = {wrong};
    EXPECT_EQ(refused(policy).subject, "--disable") << wrong;
  }
  policy.disable = {"stub_kernl"};
  EXPECT_TRUE(mentions(refused(policy).hint, "stub_kernel"));
}

TEST_F(PolicyNames, ForcedKernelsExist) {
  Policy policy;
  policy.force_kernel = "stub_kernel";
  EXPECT_TRUE(accepted(policy));
  policy.force_kernel = "stub_kerne";
  EXPECT_EQ(refused(policy).subject, "--kernel");
  EXPECT_TRUE(mentions(refused(policy).hint, "stub_kernel"));
}

TEST_F(PolicyNames, BatchSizesAreSortedOnceEach) {
  StubRegistry stubs;
  Policy policy;
  policy.batch = {64, 1, 64, 8};
  EXPECT_EQ(checked_policy(policy, stubs.registry()).value().batch, (std::vector<int64_t>{1, 8, 64}));
  for (int64_t wrong : {int64_t{0}, int64_t{-3}}) {
    policy.batch = {8, wrong};
    EXPECT_EQ(refused(policy).subject, "--batch");
    EXPECT_EQ(refused(policy).found, std::to_string(wrong));
  }
}

TEST_F(PolicyNames, EmptyMeansAuto) {
  StubRegistry stubs;
  Policy policy = prefer("");
  policy.moe.families[Family::mxfp4] = "";
  const Policy checked = checked_policy(policy, stubs.registry()).value();
  EXPECT_EQ(checked.linear.global, "auto");
  EXPECT_EQ(checked.moe.families.at(Family::mxfp4), "auto");
}

TEST_F(PolicyNames, OtherValues) {
  Policy policy;
  policy.selection = "fastest";
  EXPECT_EQ(refused(policy).subject, "--selection");
  policy.selection = "static";
  EXPECT_TRUE(accepted(policy));
  policy.dtype = DType::i8;
  EXPECT_EQ(refused(policy).subject, "--dtype");
}

}  // namespace
}  // namespace gearshift
