#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_mxfp4(const PrefillCall& call, const PrefillLaunch& launch) {
  return launch_prefill<UnitWeights<Mxfp4Unit<false>>, false>(call, launch);
}

}  // namespace gearshift::cuda
