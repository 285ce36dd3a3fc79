#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_nvfp4(const PrefillCall& call, const PrefillLaunch& launch) {
  return launch_prefill<Bf16Weights<Nvfp4Unit<false>>, false>(call, launch);
}

}  // namespace gearshift::cuda
