// Every registered kernel, on every scheme that its contract accepts, at every instruction set this machine has: held
// against the float64 reference element by element. A new kernel needs no new test.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <set>

#include "case_run.h"
#include "device/cpu_features.h"
#include "kernel/cpu/isa.h"
#include "schemes.h"

namespace gearshift::testing {
namespace {

uint64_t fresh_seed() {
  static const uint64_t seed = [] {
    const uint64_t drawn = std::random_device{}();
    std::cout << "seed " << drawn << "\n";
    return drawn;
  }();
  return seed;
}

std::vector<const Kernel*> registered() {
  std::vector<const Kernel*> kernels;
  for (const KernelList& list : builtin_registry().lists) {
    for (const ListEntry& entry : list.entries) {
      if (entry.kernel->platform != Platform::cpu) continue;                // tests/cuda
      if (!isa_covers(detect_isa(), entry.kernel->contract.isa)) continue;  // nothing here could run it
      if (std::find(kernels.begin(), kernels.end(), entry.kernel) == kernels.end()) kernels.push_back(entry.kernel);
    }
  }
  return kernels;
}

DeviceProfile host() {
  DeviceProfile profile;
  profile.isa = detect_isa();
  return profile;
}

std::vector<Isa> levels() {
  std::vector<Isa> all;
  for (Isa isa : code_paths()) {
    if (isa_covers(detect_isa(), isa)) all.push_back(isa);
  }
  return all;
}

bool serves(const Kernel& kernel, Family family) {
  return std::find(kernel.families.begin(), kernel.families.end(), family) != kernel.families.end();
}

// The sum of the checkpoint's own recipe over all rows: another row's values change this row's.
bool rows_depend(const Kernel& kernel, const Scheme& scheme) {
  return kernel.activation == ActivationUse::as_checkpoint && scheme.activation && scheme.activation->dynamic &&
         scheme.activation->granularity == Granularity::tensor;
}

struct ForcedIsa {
  explicit ForcedIsa(Isa isa) { set_max_isa(isa); }
  ~ForcedIsa() { set_max_isa(detect_isa()); }
};

class EveryKernel : public ::testing::TestWithParam<const Kernel*> {};

TEST_P(EveryKernel, MatchesTheReferenceInsideItsContract) {
  const Kernel& kernel = *GetParam();
  std::mt19937_64 random(fresh_seed());
  const std::vector<std::pair<std::vector<int64_t>, int64_t>> shapes = {
      {{1}, 1}, {{17, 5}, 31}, {{64}, 160}, {{3, 49, 17}, 528}};
  const DType dtypes[] = {DType::bf16, DType::f16, DType::f32};
  int ran = 0;
  for (const Named& scheme : all_schemes()) {
    if (!serves(kernel, scheme.family)) continue;
    for (const auto& [rows, k] : shapes) {
      const DType dtype = dtypes[random() % 3];
      std::vector<int64_t> parts;
      for (int64_t n : rows) parts.push_back(up(n, scheme.n_multiple) * scheme.n_multiple);
      const MadeLayer layer(scheme, parts, up(k, scheme.k_multiple) * scheme.k_multiple, random(), random() % 2 == 0);
      if (refuses(kernel, layer.spec, host(), dtype)) continue;
      constexpr int64_t kRows = 33;
      GuardedMatrix x(dtype, kRows, layer.spec.k, static_cast<int64_t>(random() % 3));
      fill_activations(x, kRows, layer.spec.k, random);
      const bool alone = rows_depend(kernel, scheme.scheme);
      const Answers all = answers(kernel, layer, x, kRows);
      for (Isa isa : levels()) {
        const ForcedIsa forced(isa);
        std::map<int64_t, Ran> by_m;
        for (int64_t m : {int64_t{0}, int64_t{1}, int64_t{7}, kRows}) {
          by_m[m] = run_guarded(kernel, layer, x, m, dtype, 1 + static_cast<int>(random() % 3));
          const Verdict verdict =
              alone ? judge(kernel, layer, x, m, dtype, by_m[m]) : judge(kernel, layer.spec, all, dtype, by_m[m]);
          ASSERT_EQ(verdict.wrong, 0) << kernel.name << " on " << scheme.name << " N " << layer.spec.n << " K "
                                      << layer.spec.k << " M " << m << " " << name(isa) << " " << name(dtype) << ": "
                                      << verdict.first;
          ++ran;
        }
        if (!kernel.contract.bits_same_for_any_m || alone) continue;
        for (const auto& [m, result] : by_m) {
          for (size_t i = 0; i < result.y.size(); ++i) {
            ASSERT_EQ(result.y[i], by_m[kRows].y[i])
                << kernel.name << " on " << scheme.name << " changes bits with M " << m;
          }
        }
      }
    }
  }
  EXPECT_GT(ran, 0) << kernel.name << " could run here and was not covered";
  std::cout << "covered " << kernel.name << ": " << ran << " runs\n";
}

// Beyond what kernels handle at a time: 256 and 64 rows.
TEST_P(EveryKernel, MatchesTheReferenceAcrossItsChunks) {
  const Kernel& kernel = *GetParam();
  std::mt19937_64 random(fresh_seed() + 1);
  std::set<Family> done;
  for (const Named& scheme : all_schemes()) {
    if (!serves(kernel, scheme.family) || done.count(scheme.family) != 0) continue;
    const int64_t n = up(40, scheme.n_multiple) * scheme.n_multiple;
    const MadeLayer layer(scheme, {n, n}, 96, random());
    if (refuses(kernel, layer.spec, host(), DType::bf16)) continue;
    done.insert(scheme.family);
    constexpr int64_t kRows = 259;
    GuardedMatrix x(DType::bf16, kRows, 96, 0);
    fill_activations(x, kRows, 96, random);
    const Verdict verdict =
        judge(kernel, layer, x, kRows, DType::bf16, run_guarded(kernel, layer, x, kRows, DType::bf16, 2));
    EXPECT_EQ(verdict.wrong, 0) << kernel.name << " on " << scheme.name << ": " << verdict.first;
  }
  EXPECT_FALSE(done.empty());
}

TEST_P(EveryKernel, ZeroRowsGiveExactlyZero) {
  const Kernel& kernel = *GetParam();
  std::mt19937_64 random(fresh_seed() + 2);
  for (const Named& scheme : all_schemes()) {
    if (!serves(kernel, scheme.family)) continue;
    const MadeLayer layer(scheme, {32}, 256, random());
    if (refuses(kernel, layer.spec, host(), DType::f16)) continue;
    GuardedMatrix x(DType::f16, 3, 256, 0);
    for (int64_t m = 0; m < 3; ++m) {
      for (int64_t k = 0; k < 256; ++k) x.set(m, k, 0);
    }
    for (double y : run_guarded(kernel, layer, x, 3, DType::f16, 2).y)
      ASSERT_EQ(y, 0) << kernel.name << " on " << scheme.name;
  }
}

// Every restriction of the contract, broken one at a time on a layer that was accepted.
TEST_P(EveryKernel, RefusesWhatIsJustOutsideAndNamesTheField) {
  const Kernel& kernel = *GetParam();
  const Contract& contract = kernel.contract;
  std::mt19937_64 random(fresh_seed() + 3);
  for (const Named& scheme : all_schemes()) {
    if (!serves(kernel, scheme.family)) continue;
    const MadeLayer layer(scheme, {32}, 256, random());
    if (refuses(kernel, layer.spec, host(), DType::bf16)) continue;
    const auto refused = [&](LayerSpec spec, std::string_view field, DType dtype = DType::bf16) {
      const auto refusal = refuses(kernel, spec, host(), dtype);
      ASSERT_TRUE(refusal) << kernel.name << " accepts " << field << " outside its contract";
      EXPECT_EQ(refusal->field, field);
      EXPECT_FALSE(refusal->found.empty() || refusal->wanted.empty() || refusal->reason.empty()) << field;
    };
    LayerSpec spec = layer.spec;
    if (!contract.weight_formats.empty()) {
      spec.scheme.weight.format = contract.weight_formats[0] == Format::float_ ? Format::e4m3 : Format::float_;
      refused(spec, "weight_formats");
    }
    spec = layer.spec;
    if (!contract.storages.empty()) {
      spec.scheme.weight.storage = contract.storages[0] == Storage::dense ? Storage::awq : Storage::dense;
      if (contract.storages.size() == 1 || spec.scheme.weight.storage == Storage::awq) refused(spec, "storages");
    }
    spec = layer.spec;
    if (!contract.groupings.empty()) {
      using Kind = Grouping::Kind;
      const std::array kinds = {Kind::tensor, Kind::row, Kind::group, Kind::whole_row, Kind::block};
      spec.scheme.weight.grouping.kind = *std::find_if(kinds.begin(), kinds.end(), [&](Kind kind) {
        return std::find(contract.groupings.begin(), contract.groupings.end(), kind) == contract.groupings.end();
      });
      refused(spec, "groupings");
    }
    spec = layer.spec;
    const Grouping::Kind kind = spec.scheme.weight.grouping.kind;
    if (!contract.groups.empty() && (kind == Grouping::Kind::group || kind == Grouping::Kind::block)) {
      spec.scheme.weight.grouping.cols = contract.groups[0] + 1;
      refused(spec, "groups");
    }
    spec = layer.spec;
    if (!contract.scale_dtypes.empty()) {
      spec.scheme.weight.scale = DType::f64;
      refused(spec, "scale_dtypes");
    }
    spec = layer.spec;
    if (!contract.activation_formats.empty()) {
      spec.scheme.activation.reset();
      refused(spec, "activation_formats");
    }
    spec = layer.spec;
    if (!contract.activation_granularities.empty()) {
      const bool tensor = contract.activation_granularities[0] == Granularity::tensor;
      spec.scheme.activation->granularity = tensor ? Granularity::token_group : Granularity::tensor;
      refused(spec, "activation_granularities");
    }
    spec = layer.spec;
    if (!contract.activation_groups.empty()) {
      spec.scheme.activation->group = contract.activation_groups[0] + 1;
      refused(spec, "activation_groups");
    }
    if (!contract.dtypes.empty()) refused(layer.spec, "dtypes", DType::i8);
    spec = layer.spec;
    if (contract.k.multiple > 1) {
      ++spec.k;
      refused(spec, "k");
    }
    spec = layer.spec;
    spec.n = 0;
    refused(spec, "n");
    spec = layer.spec;
    spec.n = int64_t{1} << 40;
    refused(spec, "max_weight_elements");
    spec = layer.spec;
    if (!contract.zero_points && spec.scheme.quantized) {
      spec.scheme.weight.symmetric = false;
      refused(spec, "zero_points");
    }
    spec = layer.spec;
    if (!contract.act_order) {
      spec.scheme.weight.act_order = true;
      refused(spec, "act_order");
    }
    spec = layer.spec;
    if (!contract.asymmetric_activations) {
      spec.scheme.activation->symmetric = false;
      refused(spec, "asymmetric_activations");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, EveryKernel, ::testing::ValuesIn(registered()),
                         [](const auto& kernel) { return std::string(kernel.param->name); });

// The floor is a kernel too: the last line of every list, on every scheme of its family.
TEST(Case13, TheLastLineOfEveryListServesEverySchemeOfItsFamily) {
  std::mt19937_64 random(fresh_seed() + 4);
  for (const Named& scheme : all_schemes()) {
    const KernelList* list = builtin_registry().find(Platform::cpu, scheme.family);
    ASSERT_NE(list, nullptr) << scheme.name;
    const Kernel& floor = *list->entries.back().kernel;
    EXPECT_EQ(floor.name, "reference");
    const MadeLayer layer(scheme, {96}, 256, random());
    ASSERT_FALSE(refuses(floor, layer.spec, host(), DType::bf16)) << scheme.name;
    for (int64_t m : {0, 1, 7, 33}) {
      GuardedMatrix x(DType::bf16, m, 256, 1);
      fill_activations(x, m, 256, random);
      const Ran ran = run_guarded(floor, layer, x, m, DType::bf16, 2);
      EXPECT_EQ(judge(floor, layer, x, m, DType::bf16, ran).wrong, 0) << scheme.name << " M " << m;
    }
  }
}

// An empty batch touches nothing and leaves the kernel usable.
TEST(Case74, EmptyBatchThenANormalOne) {
  std::mt19937_64 random(fresh_seed() + 5);
  for (const Kernel* kernel : registered()) {
    for (const Named& scheme : all_schemes()) {
      if (!serves(*kernel, scheme.family)) continue;
      const MadeLayer layer(scheme, {64}, 256, random());
      if (refuses(*kernel, layer.spec, host(), DType::bf16)) continue;
      GuardedMatrix x(DType::bf16, 1, 256, 0);
      fill_activations(x, 1, 256, random);
      EXPECT_TRUE(run_guarded(*kernel, layer, x, 0, DType::bf16, 2).y.empty());
      const Ran ran = run_guarded(*kernel, layer, x, 1, DType::bf16, 2);
      EXPECT_EQ(judge(*kernel, layer, x, 1, DType::bf16, ran).wrong, 0) << kernel->name << " on " << scheme.name;
    }
  }
}

}  // namespace
}  // namespace gearshift::testing
