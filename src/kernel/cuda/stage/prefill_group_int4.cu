#include "kernel/cuda/stage/prefill_group.cuh"

namespace gearshift::cuda {

namespace {

template <int Groups>
bool launch_groups(const PrefillCall& call, const GroupedTiles& group, const PrefillLaunch& launch, bool zeros) {
  return zeros ? launch_prefill_group<UnitWeights<Int4Unit<Groups, true>>>(call, group, launch)
               : launch_prefill_group<UnitWeights<Int4Unit<Groups, false>>>(call, group, launch);
}

}  // namespace

bool launch_prefill_group_int4(const PrefillCall& call, const GroupedTiles& group, const PrefillLaunch& launch,
                               int columns, bool zeros) {
  if (columns == 128) return launch_groups<1>(call, group, launch, zeros);
  if (columns == 64) return launch_groups<2>(call, group, launch, zeros);
  return launch_groups<4>(call, group, launch, zeros);
}

}  // namespace gearshift::cuda
