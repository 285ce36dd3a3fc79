#include "measure/rotating_layer.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <cstring>
#include <set>

#include "kernel/reference/reference.h"
#include "kernel/schemes.h"
#include "measure/bench_cell.h"
#include "measure/pinned_threads.h"
#include "measure/preset_scheme.h"

namespace gearshift {
namespace {

uint64_t fresh() { return std::random_device{}(); }

const Kernel& kernel_named(std::string_view name) {
  for (const KernelList& list : builtin_registry().lists) {
    for (const ListEntry& entry : list.entries) {
      if (entry.kernel->name == name) return *entry.kernel;
    }
  }
  return reference_kernel;
}

TEST(PresetScheme, IsTheInverseOfSchemeName) {
  std::set<std::string> names;
  for (const std::string_view preset : preset_names()) {
    const auto scheme = preset_scheme(preset);
    ASSERT_TRUE(scheme.ok()) << preset;
    EXPECT_EQ(scheme_name(*scheme), preset == "W8A8" ? "INT8" : preset);
    names.insert(scheme_name(*scheme));
  }
  EXPECT_EQ(names.size(), preset_names().size() - 1);
  EXPECT_EQ(*preset_scheme("nvfp4a16"), *preset_scheme("NVFP4A16"));
  const auto wrong = preset_scheme("NVFP5");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::usage);
  EXPECT_NE(wrong.error().message().find("did you mean NVFP4"), std::string::npos);
}

// Whatever a checkpoint may store can be made up: the emulation kernels read it as the reference does.
TEST(MadeUpLayer, EveryScheme) {
  const uint64_t seed = fresh();
  for (const testing::Named& named : testing::all_schemes()) {
    const int64_t n = named.n_multiple * std::max<int64_t>(1, 24 / named.n_multiple);
    const int64_t k = named.k_multiple * std::max<int64_t>(1, 256 / named.k_multiple);
    const auto made = make_up_layer(named.scheme, {n, n}, k, seed, true, named.weight_dtype);
    const KernelList* list = builtin_registry().find(Platform::cpu, made->plan.layer.family);
    ASSERT_NE(list, nullptr);
    const Kernel& kernel = *list->entries[list->entries.size() - 2].kernel;
    DeviceProfile device;
    ASSERT_FALSE(refuses(kernel, made->plan.layer, device, DType::f32)) << named.name << ": " << kernel.name;
    ASSERT_TRUE(use_kernel(*made, kernel, 2));
    const Proof proof = prove(kernel, made->prepared, 5, DType::f32, seed, 2);
    EXPECT_TRUE(proof.comparison.ok) << named.name << " (seed " << seed << "): " << proof.comparison.failure;
    EXPECT_EQ(proof.comparison.infinite, 0) << named.name;
  }
}

TEST(MadeUpLayer, OneExpertOfMany) {
  LayerSpec experts = made_up_spec(common_scheme(Family::nvfp4_w4a4), {32, 32}, 64);
  const uint64_t bytes = experts.weight_bytes;
  experts.kind = LayerKind::experts;
  experts.experts = 3;
  experts.weight_bytes *= 3;
  const std::vector<Module> one = experts.modules;
  for (int i = 1; i < 3; ++i) experts.modules.insert(experts.modules.end(), one.begin(), one.end());
  const LayerSpec linear = one_expert(experts);
  EXPECT_EQ(linear.kind, LayerKind::linear);
  EXPECT_EQ(linear.modules.size(), 2U);
  EXPECT_EQ(linear.weight_bytes, bytes);
}

TEST(RotatingLayer, EveryCopyGivesTheSameResult) {
  const uint64_t seed = fresh();
  const LayerSpec spec = made_up_spec(common_scheme(Family::nvfp4_w4a4), {40, 24}, 128, true);
  const Kernel& packed = kernel_named("cpu_nvfp4_w4a4_dot");
  ASSERT_NE(packed.layout, &checkpoint_layout);
  auto layer = RotatingLayer::make(spec, {packed.layout, &checkpoint_layout, packed.layout}, seed, 2, 40'000);
  ASSERT_TRUE(layer.ok());
  for (const Kernel* kernel : {&packed, &reference_kernel}) {
    const int64_t copies = (*layer)->copies(*kernel->layout);
    ASSERT_GT(copies, 2);
    EXPECT_GE((*layer)->bytes(*kernel->layout), 40'000U);
    auto x = allocate_matrix(DType::f32, 3, 128, "x"), y = allocate_matrix(DType::f32, 3, 64, "y");
    const int64_t bytes = kernel->workspace_bytes == nullptr ? 0 : kernel->workspace_bytes(spec, 3, 1);
    auto scratch = allocate_matrix(DType::f32, 1, bytes / 4 + 1, "scratch");
    make_activations(x->view(), seed, 1, 100);
    std::vector<float> first;
    std::set<const void*> places;
    for (int64_t i = 0; i <= copies; ++i) {
      std::memset(y->bytes.data(), 0xFF, y->bytes.size());
      RunArgs args;
      (*layer)->next(*kernel, args);
      places.insert(args.packed != nullptr ? args.packed : args.weights->parts[0].weight.data());
      args.x = std::as_const(*x).view();
      args.y = y->view();
      args.workspace = scratch->bytes.span();
      kernel->run(args);
      const auto* out = reinterpret_cast<const float*>(y->bytes.data());
      if (first.empty()) first.assign(out, out + 3 * 64);
      ASSERT_EQ(std::memcmp(first.data(), out, first.size() * 4), 0)
          << kernel->name << ", copy " << i << ", seed " << seed;
    }
    EXPECT_EQ(places.size(), static_cast<size_t>(copies));
  }
}

void leaves_a_hole(const RunArgs& args) {
  RunArgs fewer = args;
  fewer.x.rows = --fewer.y.rows;
  reference_kernel.run(fewer);
}

TEST(BenchCell, ChecksThenTimes) {
  const LayerSpec spec = made_up_spec(common_scheme(Family::bf16), {16}, 64);
  auto layer = RotatingLayer::make(spec, {&checkpoint_layout}, fresh(), 1, 10'000);
  ASSERT_TRUE(layer.ok());
  Judge judge((*layer)->weights(), 1, 1);
  auto cell = BenchCell::make(reference_kernel, **layer, 9, DType::bf16, 1, 1);
  ASSERT_TRUE(cell.ok());
  EXPECT_TRUE(cell->check(judge).ok);
  EXPECT_FALSE(cell->timing());
  cell->take(3, std::chrono::seconds(100));
  cell->take(2, std::chrono::microseconds(0));
  ASSERT_TRUE(cell->timing());
  EXPECT_EQ(cell->timing()->samples, 4);

  Kernel hole = reference_kernel;
  hole.run = leaves_a_hole;
  auto broken = BenchCell::make(hole, **layer, 9, DType::bf16, 1, 1);
  ASSERT_TRUE(broken.ok());
  EXPECT_FALSE(broken->check(judge).ok);
  EXPECT_NE(broken->comparison().failure.find("row 8"), std::string::npos) << broken->comparison().failure;
}

TEST(PinnedThreads, OneCoreEachAndAllOfThemBack) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const int cores = CPU_COUNT(&before);
  {
    const PinnedThreads pin(cores);
    EXPECT_TRUE(pin.pinned());
    std::set<int> taken;
#pragma omp parallel num_threads(cores)
    {
      cpu_set_t own;
      (void)sched_getaffinity(0, sizeof own, &own);
#pragma omp critical
      for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &own)) taken.insert(core);
      }
    }
    EXPECT_EQ(static_cast<int>(taken.size()), cores);
  }
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  EXPECT_FALSE(PinnedThreads(cores + 1).pinned());
}

}  // namespace
}  // namespace gearshift
