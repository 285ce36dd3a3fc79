// Kernels inside a parallel region of their caller.
#include "kernel/cpu/team.h"

#include <gtest/gtest.h>

#include "kernel/case_run.h"
#include "kernel/cpu/kernels.h"
#include "kernel/schemes.h"

namespace gearshift::testing {
namespace {

TEST(Team, IsOneThreadInsideARegionOfTheCaller) {
  EXPECT_EQ(team_size(3), 3);
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(2);  // regions inside regions would get threads of their own
  int sizes[2] = {0, 0};
#pragma omp parallel num_threads(2)
  {
    if (omp_get_num_threads() == 2) sizes[omp_get_thread_num()] = team_size(3);
  }
  omp_set_max_active_levels(levels);
  EXPECT_EQ(sizes[0], 1);
  EXPECT_EQ(sizes[1], 1);
}

TEST(Team, KernelsGiveTheSameResultsInsideARegionOfTheCaller) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const Named& scheme : all_schemes()) {
    for (const Kernel* kernel : {&cpu_bf16_fma, &cpu_nvfp4_w4a4_dot, &cpu_nvfp4_w4a4_emulation}) {
      if (scheme.family != kernel->families.front()) continue;
      const MadeLayer layer(scheme, {96}, 256, random());
      if (refuses(*kernel, layer.spec, DeviceProfile(), DType::bf16)) continue;
      constexpr int64_t kRows = 5;
      GuardedMatrix x(DType::bf16, kRows, 256, 0);
      fill_activations(x, kRows, 256, random);
      const Ran alone = run_guarded(*kernel, layer, x, kRows, DType::bf16, 3);
      Ran inside[2];
#pragma omp parallel for num_threads(2)
      for (int i = 0; i < 2; ++i) inside[i] = run_guarded(*kernel, layer, x, kRows, DType::bf16, 3);
      for (const Ran& ran : inside) EXPECT_EQ(ran.y, alone.y) << kernel->name << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace gearshift::testing
