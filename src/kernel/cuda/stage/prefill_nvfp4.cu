#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_nvfp4(const PrefillCall& call, const PrefillLaunch& launch, bool half) {
  if (half) return launch_prefill<UnitWeights<Nvfp4Unit<true>>, true>(call, launch);
  return launch_prefill<UnitWeights<Nvfp4Unit<false>>, false>(call, launch);
}

}  // namespace gearshift::cuda
