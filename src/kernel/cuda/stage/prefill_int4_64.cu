#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_int4_64(const PrefillCall& call, const PrefillLaunch& launch, bool zeros) {
  if (zeros) return launch_prefill<UnitWeights<Int4Unit<2, true>>, true>(call, launch);
  return launch_prefill<UnitWeights<Int4Unit<2, false>>, true>(call, launch);
}

}  // namespace gearshift::cuda
