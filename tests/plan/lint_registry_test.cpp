#include <gtest/gtest.h>

#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

std::vector<DeviceProfile> all_devices() { return known_devices(here()); }

const LintFinding* finding(const std::vector<LintFinding>& findings, std::string_view rule, std::string_view kernel) {
  for (const LintFinding& found : findings) {
    if (found.rule == rule && found.kernel == kernel) return &found;
  }
  return nullptr;
}

std::string listed(const std::vector<LintFinding>& findings) {
  std::string text;
  for (const LintFinding& found : findings)
    text += found.platform + " " + found.family + " " + found.kind + ": " + found.rule + " " + found.kernel + " " +
            found.text + "\n";
  return text;
}

TEST(LintRegistry, OursKeepTheirPromises) {
  const auto findings = lint_registry(builtin_registry(), all_devices());
  EXPECT_TRUE(findings.empty()) << listed(findings);
}

// What a careful reader of vLLM's lists finds by hand.
TEST(LintRegistry, FindsWhatIsKnownOfVllm) {
  const auto findings = lint_registry(vllm_registry(), all_devices());
  // Lines behind one that always accepts.
  EXPECT_TRUE(finding(findings, "portable_last", "EmulationMxfp8LinearKernel")) << listed(findings);
  for (const char* kernel :
       {"HummingMxfp8LinearKernel", "FlashInferTrtllmMxfp8LinearKernel", "HummingNvFp4LinearKernel",
        "FlashInferTrtllmNvFp4LinearKernel", "FlashInferCudnnNvFp4LinearKernel", "FbgemmNvFp4LinearKernel"}) {
    const bool behind = finding(findings, "reachable", kernel) != nullptr;
    bool behind_portable = false;
    for (const LintFinding& found : findings)
      behind_portable = behind_portable || (found.rule == "portable_last" && mentions(found.text, kernel));
    EXPECT_TRUE(behind || behind_portable) << kernel << "\n" << listed(findings);
  }
  // Gates that only test an import, or only the platform.
  for (const char* kernel : {"FlashInferTrtllmNvFp4LinearKernel", "FlashInferCudnnNvFp4LinearKernel",
                             "FbgemmNvFp4LinearKernel", "CutlassInt8ScaledMMLinearKernel"})
    EXPECT_TRUE(finding(findings, "device_gate", kernel)) << kernel << "\n" << listed(findings);
  // Weight-only before native on hardware that has the units.
  EXPECT_TRUE(finding(findings, "native_before_weight_only", "MarlinFP8ScaledMMLinearKernel")) << listed(findings);
  // Rules around the lists.
  EXPECT_TRUE(finding(findings, "one_fallback_rule", "")) << listed(findings);
  EXPECT_TRUE(finding(findings, "deny_list_everywhere", "MarlinNvFp4LinearKernel")) << listed(findings);
  EXPECT_TRUE(finding(findings, "value_not_presence", "")) << listed(findings);
}

TEST(LintRegistry, EachRuleIsSeenWhereItIsBroken) {
  StubRegistry stubs(Platform::cuda);
  const auto found = [&](std::string_view rule, std::string_view kernel) {
    return finding(lint_registry(stubs.registry(), all_devices()), rule, kernel) != nullptr;
  };
  Kernel& floor = stubs.add(Family::nvfp4_w4a4, "stub_floor", "emulation");
  EXPECT_TRUE(lint_registry(stubs.registry(), all_devices()).empty());
  Kernel& native = stubs.add(Family::nvfp4_w4a4, "stub_native", "native");
  native.contract.archs = {"sm_120"};
  EXPECT_TRUE(found("portable_last", "stub_floor"));
  auto& entries = stubs.list(Family::nvfp4_w4a4).entries;
  std::swap(entries[0], entries[1]);
  EXPECT_TRUE(lint_registry(stubs.registry(), all_devices()).empty());

  native.contract.archs = {};
  EXPECT_TRUE(found("device_gate", "stub_native"));
  native.contract.archs = {"sm_120", "sm_121"};
  native.contract.verified = {"sm_120"};
  EXPECT_FALSE(found("verified_devices_only", "stub_native")) << "only what is slow stands behind it";

  Kernel& marlin = stubs.add(Family::nvfp4_w4a4, "stub_weight_only", "marlin");
  marlin.contract.archs = {"sm_90", "sm_120"};
  marlin.activation = ActivationUse::float16;
  std::rotate(entries.begin(), entries.begin() + 2, entries.end());
  EXPECT_TRUE(found("native_before_weight_only", "stub_weight_only"));
  marlin.contract.archs = {"sm_90"};
  EXPECT_FALSE(found("native_before_weight_only", "stub_weight_only")) << "no device is common";
  EXPECT_FALSE(found("reachable", "stub_native"));
  marlin.activation = ActivationUse::as_checkpoint;
  marlin.contract.archs = {"sm_90", "sm_120", "sm_121"};
  EXPECT_TRUE(found("reachable", "stub_native"));
  native.contract.bits_same_for_any_m = true;
  EXPECT_FALSE(found("reachable", "stub_native")) << "--batch-invariant takes it";
  native.contract.bits_same_for_any_m = false;
  marlin.contract.k.multiple = 4096;
  EXPECT_FALSE(found("reachable", "stub_native")) << "it serves K that the other does not";
  marlin.contract.k.multiple = 1;
  entries[0].m_max = 16;
  EXPECT_FALSE(found("reachable", "stub_native")) << "it serves batch sizes that the other is not meant for";
  entries[0].on_request = true;
  EXPECT_TRUE(found("opt_in_behind", "stub_weight_only"));
  std::swap(entries[0], entries[1]);
  EXPECT_FALSE(found("opt_in_behind", "stub_weight_only"));
  EXPECT_EQ(floor.backend, "emulation");
}

TEST(LintRegistry, AKernelBeforeOthersWhereItIsNotVerified) {
  StubRegistry stubs(Platform::cuda);
  for (const char* name : {"stub_new", "stub_old"}) {
    Kernel& kernel = stubs.add(Family::fp8_w8a8, name, "native");
    kernel.contract.archs = {"sm_100", "sm_103"};
    kernel.contract.verified = {"sm_100", "sm_103"};
  }
  auto& entries = stubs.list(Family::fp8_w8a8).entries;
  entries[0].m_max = 16;
  EXPECT_TRUE(lint_registry(stubs.registry(), all_devices()).empty());
  const_cast<Kernel*>(entries[0].kernel)->contract.verified = {"sm_100"};
  const auto findings = lint_registry(stubs.registry(), all_devices());
  ASSERT_EQ(findings.size(), 1u) << listed(findings);
  EXPECT_EQ(findings[0].rule, "verified_devices_only");
  EXPECT_TRUE(mentions(findings[0].text, "sm_103"));
  EXPECT_FALSE(mentions(findings[0].text, "sm_100"));
  const_cast<Kernel*>(entries[1].kernel)->contract.verified = {"sm_100"};
  EXPECT_TRUE(lint_registry(stubs.registry(), all_devices()).empty())
      << "on sm_103 one is as good a start as the other";
}

TEST(LintRegistry, WhatThisBuildHasCodeForDoesNotMatter) {
  StubRegistry stubs(Platform::cuda);
  stubs.add(Family::fp8_w8a8, "stub_floor", "emulation").contract.targets = {"none"};
  Kernel& fast = stubs.add(Family::fp8_w8a8, "stub_fast", "native");
  fast.contract.archs = {"sm_90"};
  fast.contract.targets = {"none"};
  EXPECT_TRUE(finding(lint_registry(stubs.registry(), all_devices()), "portable_last", "stub_floor"));
  Kernel& behind = stubs.add(Family::fp8_w8a8, "stub_behind", "native");
  behind.contract.archs = {"sm_90"};
  behind.contract.targets = {"none"};
  EXPECT_TRUE(finding(lint_registry(stubs.registry(), all_devices()), "reachable", "stub_behind"));
}

}  // namespace
}  // namespace gearshift
