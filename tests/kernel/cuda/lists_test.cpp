// What must hold of the CUDA lists on a machine without a GPU.
#include <gtest/gtest.h>

#include <set>

#include "device/cuda.h"
#include "kernel/case_run.h"
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/stream_tactics.h"
#include "kernel/schemes.h"

namespace gearshift::testing {
namespace {

// A device that every CUDA kernel of this build has code for, as far as contracts can tell.
DeviceProfile h200() {
  DeviceProfile device;
  device.platform = Platform::cuda;
  device.arch = "sm_90";
  return device;
}

// The same kernel as a build with code for this device has it.
Kernel built(Kernel kernel) {
  if (kernel.platform == Platform::cuda) kernel.contract.targets = {"sm_90a"};
  return kernel;
}

TEST(CudaLists, EveryFamilyEndsWithTheHostsReference) {
  for (const Family family : all_families()) {
    const KernelList* list = builtin_registry().find(Platform::cuda, family);
    ASSERT_NE(list, nullptr) << name(family);
    EXPECT_EQ(list->entries.back().kernel->name, "reference");
    bool upgraded = false;
    for (const ListEntry& entry : list->entries) {
      EXPECT_FALSE(entry.why.empty()) << entry.kernel->name;
      EXPECT_EQ(std::count(entry.kernel->families.begin(), entry.kernel->families.end(), family), 1)
          << entry.kernel->name;
      if (entry.kernel->platform != Platform::cuda) continue;
      EXPECT_EQ(entry.kernel->layout->platform, Platform::cuda) << entry.kernel->name;
      EXPECT_FALSE(entry.kernel->contract.archs.empty()) << entry.kernel->name;
      if (entry.kernel->backend != "native") continue;
      // Kernels that take activations as they come stand behind those of the checkpoint's own precision.
      const bool quantizes =
          family == Family::nvfp4_w4a4 || family == Family::fp8_w8a8 || family == Family::fp8_block_w8a8;
      const bool upgrades = quantizes && entry.kernel->activation == ActivationUse::float16;
      EXPECT_TRUE(upgrades || !upgraded) << entry.kernel->name;
      upgraded = upgraded || upgrades;
    }
  }
}

// A baseline for every scheme there is: some CUDA kernel takes it at any batch size.
TEST(CudaLists, SomeKernelTakesEveryScheme) {
  std::mt19937_64 random(1);
  for (const Named& scheme : all_schemes()) {
    const MadeLayer layer(scheme, {64, 32}, 256, random());
    int takers = 0;
    for (const ListEntry& entry : builtin_registry().find(Platform::cuda, scheme.family)->entries) {
      if (entry.kernel->platform != Platform::cuda || entry.kernel->contract.m.max != 0) continue;
      takers += refuses(built(*entry.kernel), layer.spec, h200(), DType::bf16) ? 0 : 1;
    }
    EXPECT_GT(takers, 0) << scheme.name;
  }
}

// Units keep scales of 16 bits: fp32 ones are the baseline's.
TEST(CudaLists, Int4InUnitsRefusesScalesOfFp32) {
  std::mt19937_64 random(3);
  for (const Named& scheme : all_schemes()) {
    if (std::string_view(scheme.name) != "int4 packed asymmetric") continue;
    const MadeLayer layer(scheme, {64}, 256, random());
    for (const Kernel* kernel : {&sm80_int4_w4a16_stream, &sm90_int4_w4a16_prefill}) {
      const auto refusal = refuses(built(*kernel), layer.spec, h200(), DType::bf16);
      ASSERT_TRUE(refusal) << kernel->name;
      EXPECT_EQ(refusal->field, "scale_dtypes") << kernel->name;
    }
    return;
  }
  FAIL() << "no such scheme";
}

// Equal bits in every batch are had on the device, without a request: by one kernel for any number of tokens.
TEST(CudaLists, EqualBitsInEveryBatchStayOnTheDevice) {
  std::mt19937_64 random(4);
  for (const Named& scheme : all_schemes()) {
    const std::string_view named = scheme.name;
    if (named != "fp8 channel token" && named != "fp8 block") continue;
    const MadeLayer layer(scheme, {256}, 512, random());
    std::string_view first;
    for (const ListEntry& entry : builtin_registry().find(Platform::cuda, scheme.family)->entries) {
      const Kernel kernel = built(*entry.kernel);
      if (!first.empty() || entry.on_request || !kernel.contract.bits_same_for_any_m || kernel.contract.m.max != 0)
        continue;
      if (!refuses(kernel, layer.spec, h200(), DType::bf16)) first = entry.kernel->name;
    }
    EXPECT_EQ(first, named == "fp8 block" ? "sm90_fp8_block_w8a8_invariant" : "sm90_fp8_w8a8_invariant");
  }
}

TEST(CudaLists, WithoutCodeTheBuildStageSaysWhatToDo) {
  std::mt19937_64 random(2);
  const MadeLayer layer({"bf16", Family::bf16, {}, DType::bf16}, {64}, 64, random());
  Kernel kernel = *builtin_registry().find(Platform::cuda, Family::bf16)->entries.front().kernel;
  kernel.contract.targets = {"none"};
  const auto none = refuses(kernel, layer.spec, h200(), DType::bf16);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->stage, Stage::build);
  EXPECT_EQ(none->field, "targets");
  EXPECT_NE(none->reason.find("install the CUDA toolkit"), std::string::npos);
  kernel.contract.targets = {"sm_80", "sm_120a"};
  const auto other = refuses(kernel, layer.spec, h200(), DType::bf16);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->stage, Stage::build);
  EXPECT_EQ(other->found, "one of sm_80, sm_120a");
  EXPECT_EQ(other->wanted, "sm_90");
  EXPECT_NE(other->reason.find("GEARSHIFT_CUDA_ARCHITECTURES"), std::string::npos);
}

using cuda::StreamDevice;

// Whatever the shape, a variant that fits; and on an H200 those that were measured to be the fastest, or nearly.
void every_shape_gets_one_that_fits(cuda::StreamTactics tactics, std::initializer_list<int> units, int rare_unit) {
  const StreamDevice small{128, 101376, 102400, false};  // an Ada board
  for (const StreamDevice& device : {StreamDevice{}, small}) {
    for (const int64_t slabs : {1, 2, 3, 5, 64, 256, 1792, 2176, 9504}) {
      for (const int64_t units_along_k : {1, 8, 32, 64, 136, 224}) {
        for (const int64_t m : {1, 8, 9, 16}) {
          for (const int unit_bytes : units) {
            const bool rare = unit_bytes == rare_unit;
            const auto choice = cuda::choose_stream_tactic(tactics, slabs, units_along_k, m, unit_bytes, rare, device);
            ASSERT_GE(choice.tactic, 0) << slabs << " slabs, " << units_along_k << " units, M " << m;
            const auto& tactic = tactics[static_cast<size_t>(choice.tactic)];
            EXPECT_TRUE(cuda::stream_fits(tactic, unit_bytes, slabs, m, device, rare));
            EXPECT_TRUE(device.clusters || choice.cluster == 1);
          }
        }
      }
    }
  }
}
TEST(StreamTactics, EveryShapeGetsOneThatFits) {
  every_shape_gets_one_that_fits(cuda::stream_tactics, {1056, 1152, 1280}, 1280);
  every_shape_gets_one_that_fits(cuda::stream_row_tactics, {2048, 2112}, 2112);
}

TEST(StreamTactics, NamesFindThemselves) {
  for (const cuda::StreamTactics tactics :
       {cuda::StreamTactics(cuda::stream_tactics), cuda::StreamTactics(cuda::stream_row_tactics)}) {
    std::set<std::string_view> seen;
    for (const std::string_view name : cuda::stream_tactic_names(tactics)) {
      EXPECT_TRUE(seen.insert(name).second) << name << " names two tactics";
      const auto found = cuda::find_stream_tactic(tactics, name);
      ASSERT_GE(found.tactic, 0) << name;
      EXPECT_EQ(cuda::stream_tactic_name(tactics[static_cast<size_t>(found.tactic)], found.cluster), name);
    }
    EXPECT_LT(cuda::find_stream_tactic(tactics, "fast").tactic, 0);
  }
}

}  // namespace
}  // namespace gearshift::testing
