#include "kernel/cuda/stage/prefill_group.cuh"

namespace gearshift::cuda {

bool launch_prefill_group_mxfp4(const PrefillCall& call, const GroupedTiles& group, const PrefillLaunch& launch) {
  return launch_prefill_group<UnitWeights<Mxfp4Unit<false>>>(call, group, launch);
}

}  // namespace gearshift::cuda
