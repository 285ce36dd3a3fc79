#include <gtest/gtest.h>

#include <set>

#include "gearshift/kernel.h"

namespace gearshift {
namespace {

LayerSpec layer_of(int64_t n, int64_t k) {
  LayerSpec layer;
  layer.n = n;
  layer.k = k;
  layer.scheme.quantized = true;
  layer.scheme.weight = {Format::uint4, Storage::awq, {Grouping::Kind::group, 1, 64}, false, DType::f16};
  return layer;
}

TEST(Contract, AnEmptyOneAcceptsEverything) {
  EXPECT_FALSE(refuses(Kernel{}, layer_of(8, 8), {}, DType::bf16));
  EXPECT_FALSE(refuses(Kernel{}, layer_of(1, 1), {}, DType::f32));
}

TEST(Contract, ReasonsNameTheNumber) {
  Kernel kernel;
  kernel.contract.k.multiple = 256;
  const auto refusal = refuses(kernel, layer_of(4096, 1824), {}, DType::bf16);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->stage, Stage::layer);
  EXPECT_EQ(refusal->field, "k");
  EXPECT_EQ(refusal->found, "1824");
  EXPECT_EQ(refusal->wanted, "a multiple of 256");
  EXPECT_EQ(refusal->reason, "K 1824 is not a multiple of 256 (1824 mod 256 = 32)");
}

TEST(Contract, BoundsHoldAtTheirEdges) {
  Kernel kernel;
  kernel.contract.n = {16, 64, 16};
  EXPECT_FALSE(refuses(kernel, layer_of(16, 8), {}, DType::bf16));
  EXPECT_FALSE(refuses(kernel, layer_of(64, 8), {}, DType::bf16));
  EXPECT_EQ(refuses(kernel, layer_of(0, 8), {}, DType::bf16)->reason, "N 0 is less than 16");
  EXPECT_EQ(refuses(kernel, layer_of(80, 8), {}, DType::bf16)->reason, "N 80 is more than 64");
  EXPECT_EQ(refuses(kernel, layer_of(40, 8), {}, DType::bf16)->wanted, "a multiple of 16");
}

TEST(Contract, TheFirstFieldInOrderDecides) {
  Kernel kernel;
  kernel.contract.isa = Isa::avx512;
  kernel.contract.weight_formats = {Format::e2m1};
  kernel.contract.groups = {16, 32};
  kernel.contract.zero_points = false;
  const LayerSpec layer = layer_of(8, 64);
  DeviceProfile device;
  auto refusal = refuses(kernel, layer, device, DType::bf16);
  EXPECT_EQ(refusal->field, "isa");
  EXPECT_EQ(refusal->stage, Stage::device);
  device.isa = Isa::avx512_vnni;
  refusal = refuses(kernel, layer, device, DType::bf16);
  EXPECT_EQ(refusal->field, "weight_formats");
  EXPECT_EQ(refusal->reason, "weights are uint4; this kernel takes e2m1");
  kernel.contract.weight_formats = {};
  refusal = refuses(kernel, layer, device, DType::bf16);
  EXPECT_EQ(refusal->field, "groups");
  EXPECT_EQ(refusal->wanted, "one of 16, 32");
  kernel.contract.groups = {};
  EXPECT_EQ(refuses(kernel, layer, device, DType::bf16)->field, "zero_points");
  kernel.contract.zero_points = true;
  EXPECT_FALSE(refuses(kernel, layer, device, DType::bf16));
}

TEST(Contract, OtherPlatforms) {
  Kernel kernel;
  kernel.platform = Platform::cuda;
  kernel.contract.archs = {"sm_90"};
  DeviceProfile device;
  EXPECT_EQ(refuses(kernel, layer_of(8, 64), device, DType::bf16)->field, "platform");
  device.platform = Platform::cuda;
  device.arch = "sm_120";
  EXPECT_EQ(refuses(kernel, layer_of(8, 64), device, DType::bf16)->field, "archs");
  device.arch = "sm_90";
  EXPECT_FALSE(refuses(kernel, layer_of(8, 64), device, DType::bf16));
  // A CPU kernel without demands serves them from the host.
  EXPECT_FALSE(refuses(Kernel{}, layer_of(8, 64), device, DType::bf16));
}

TEST(Contract, CodeTargets) {
  for (const char* runs :
       {"sm_90 sm_90", "sm_80 sm_86", "sm_80 sm_89", "sm_90a sm_90", "sm_100 sm_103", "sm_100f sm_103",
        "sm_120f sm_121", "compute_80 sm_121", "compute_90a sm_90", "gfx942 gfx942"}) {
    const std::string pair = runs;
    const size_t blank = pair.find(' ');
    EXPECT_TRUE(target_covers(pair.substr(0, blank), pair.substr(blank + 1))) << runs;
  }
  for (const char* fails : {"sm_90 sm_89", "sm_90 sm_100", "sm_90a sm_91", "sm_100a sm_103", "sm_121 sm_120",
                            "sm_103f sm_100", "compute_90 sm_89", "compute_90a sm_100", "gfx942 gfx950", "sm_90 gfx942",
                            "sm_ sm_90", "sm_x sm_90", "sm_90 sm_", " sm_90", "sm_99999999999 sm_90"}) {
    const std::string pair = fails;
    const size_t blank = pair.find(' ');
    EXPECT_FALSE(target_covers(pair.substr(0, blank), pair.substr(blank + 1))) << fails;
  }
}

TEST(Contract, ShardsThatBeginInsideAScaleGroup) {
  Kernel kernel;
  LayerSpec layer = layer_of(64, 128);
  layer.shard = Shard{2, Split::row, false, true, false, nullptr};
  EXPECT_EQ(refuses(kernel, layer, {}, DType::bf16)->field, "shard_offset");
  kernel.contract.shard_offset = true;
  EXPECT_FALSE(refuses(kernel, layer, {}, DType::bf16));
}

TEST(Contract, Features) {
  const auto field = [](const Kernel& kernel, const LayerSpec& layer) {
    const auto refusal = refuses(kernel, layer, {}, DType::bf16);
    return refusal ? refusal->field : std::string();
  };
  Kernel kernel;
  kernel.contract.act_order = kernel.contract.bias = kernel.contract.experts = kernel.contract.pre_scale = false;
  kernel.contract.partial_groups = false;
  kernel.contract.max_weight_elements = 1 << 20;
  LayerSpec layer = layer_of(64, 128);
  EXPECT_EQ(field(kernel, layer), "");
  layer.k = 96;
  EXPECT_EQ(field(kernel, layer), "partial_groups");
  layer.k = 128;
  layer.scheme.pre_scale = true;
  EXPECT_EQ(field(kernel, layer), "pre_scale");
  layer.kind = LayerKind::experts;
  EXPECT_EQ(field(kernel, layer), "experts");
  layer.bias = true;
  EXPECT_EQ(field(kernel, layer), "bias");
  layer.scheme.weight.act_order = true;
  EXPECT_EQ(field(kernel, layer), "act_order");
  layer.n = INT64_MAX / 2;
  EXPECT_EQ(field(kernel, layer), "max_weight_elements");
}

TEST(Registry, ListsHoldTheirInvariants) {
  // Native at the checkpoint's own precision, native with activations as they come, emulation in the same order.
  const auto rank = [](const Kernel& kernel) {
    const int upgraded = kernel.activation == ActivationUse::float16 ? 1 : 0;
    return kernel.backend == "native" ? upgraded : kernel.backend == "emulation" ? 2 + upgraded : 4;
  };
  std::set<std::string_view> backends(known_backends().begin(), known_backends().end());
  EXPECT_EQ(backends.size(), known_backends().size());
  for (Family family : all_families()) {
    const KernelList* list = builtin_registry().find(Platform::cpu, family);
    ASSERT_NE(list, nullptr) << name(family);
    EXPECT_EQ(list->family, family);
    EXPECT_EQ(list->entries.back().kernel->name, "reference");
    std::set<std::string_view> names;
    int before = 0;
    for (const ListEntry& entry : list->entries) {
      const Kernel& kernel = *entry.kernel;
      EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name;
      EXPECT_NE(std::find(kernel.families.begin(), kernel.families.end(), family), kernel.families.end())
          << kernel.name;
      EXPECT_EQ(backends.count(kernel.backend), 1u) << kernel.backend;
      EXPECT_FALSE(entry.why.empty() || kernel.formula.empty()) << kernel.name;
      EXPECT_GE(rank(kernel), before) << kernel.name << " stands too far back";
      before = rank(kernel);
    }
  }
}

TEST(Registry, APlatformWithoutListsGetsTheHostsReferences) {
  for (Platform platform : {Platform::rocm, Platform::xpu}) {
    const KernelList* list = builtin_registry().find(platform, Family::nvfp4_w4a4);
    ASSERT_NE(list, nullptr);
    ASSERT_EQ(list->entries.size(), 1u);
    EXPECT_EQ(list->entries[0].kernel->name, "reference");
    EXPECT_EQ(list->platform, platform);
  }
  Registry partial{"partial", {{Platform::cuda, Family::bf16, {}}}};
  EXPECT_NE(partial.find(Platform::cuda, Family::bf16), nullptr);
  EXPECT_EQ(partial.find(Platform::cuda, Family::mxfp4), nullptr);
  EXPECT_NE(partial.find(Platform::rocm, Family::mxfp4), nullptr);
}

TEST(Registry, NamesOfStages) {
  std::set<std::string_view> names;
  for (Stage stage : {Stage::policy, Stage::build, Stage::device, Stage::layer, Stage::self_check, Stage::rank}) {
    EXPECT_FALSE(name(stage).empty());
    EXPECT_TRUE(names.insert(name(stage)).second);
  }
}

}  // namespace
}  // namespace gearshift
