// Kernels that promise the same bits for a row whatever stands beside it: every row alone, and inside batches.
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "case_run.h"
#include "device/cpu_features.h"
#include "schemes.h"

namespace gearshift::testing {
namespace {

bool scale_of_all_rows(const Kernel& kernel, const Scheme& scheme) {
  return kernel.activation == ActivationUse::as_checkpoint && scheme.activation && scheme.activation->dynamic &&
         scheme.activation->granularity == Granularity::tensor;
}

// The rows of `x` from `first` on, in memory of their own.
GuardedMatrix rows_of(GuardedMatrix& x, int64_t first, int64_t rows, int64_t cols, DType dtype) {
  GuardedMatrix some(dtype, rows, cols, 0);
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t k = 0; k < cols; ++k) some.set(m, k, static_cast<float>(x.at(first + m, k)));
  return some;
}

TEST(Case73, ARowHasTheSameBitsAloneAndInBatches) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  DeviceProfile host;
  host.isa = detect_isa();
  constexpr int64_t kMost = 256;
  std::set<std::string_view> covered;
  for (const Named& scheme : all_schemes()) {
    const KernelList* list = builtin_registry().find(Platform::cpu, scheme.family);
    ASSERT_NE(list, nullptr);
    const MadeLayer layer(scheme, {up(13, scheme.n_multiple) * scheme.n_multiple},
                          up(96, scheme.k_multiple) * scheme.k_multiple, random(), true);
    GuardedMatrix x(DType::bf16, kMost, layer.spec.k, 0);
    fill_activations(x, kMost, layer.spec.k, random);
    for (const ListEntry& entry : list->entries) {
      const Kernel& kernel = *entry.kernel;
      if (!kernel.contract.bits_same_for_any_m || scale_of_all_rows(kernel, scheme.scheme)) continue;
      if (refuses(kernel, layer.spec, host, DType::bf16)) continue;
      if (kernel.contract.m.max != 0 && kernel.contract.m.max < kMost) continue;
      covered.insert(kernel.name);
      const Ran all = run_guarded(kernel, layer, x, kMost, DType::bf16, 2);
      const auto n = static_cast<size_t>(layer.spec.n);
      for (const int64_t m : {int64_t{1}, int64_t{2}, int64_t{31}, int64_t{32}, int64_t{33}}) {
        for (const int64_t first : {int64_t{0}, int64_t{5}, kMost - m}) {
          GuardedMatrix some = rows_of(x, first, m, layer.spec.k, DType::bf16);
          const Ran alone = run_guarded(kernel, layer, some, m, DType::bf16, 1);
          for (size_t i = 0; i < alone.y.size(); ++i)
            ASSERT_EQ(alone.y[i], all.y[static_cast<size_t>(first) * n + i])
                << kernel.name << " on " << scheme.name << ", rows from " << first << ", M " << m;
        }
      }
    }
  }
  EXPECT_TRUE(covered.count("reference")) << "nothing was tried";
  std::cout << covered.size() << " kernels\n";
}

}  // namespace
}  // namespace gearshift::testing
