#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_int4_128(const PrefillCall& call, const PrefillLaunch& launch, bool zeros, bool half) {
  if (half) {
    return zeros ? launch_prefill<UnitWeights<Int4Unit<1, true, true>>, true>(call, launch)
                 : launch_prefill<UnitWeights<Int4Unit<1, false, true>>, true>(call, launch);
  }
  return zeros ? launch_prefill<UnitWeights<Int4Unit<1, true>>, false>(call, launch)
               : launch_prefill<UnitWeights<Int4Unit<1, false>>, false>(call, launch);
}

}  // namespace gearshift::cuda
