#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_int4_32(const PrefillCall& call, const PrefillLaunch& launch, bool zeros) {
  if (zeros) return launch_prefill<UnitWeights<Int4Unit<4, true>>, true>(call, launch);
  return launch_prefill<UnitWeights<Int4Unit<4, false>>, true>(call, launch);
}

}  // namespace gearshift::cuda
