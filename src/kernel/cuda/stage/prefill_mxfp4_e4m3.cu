#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_mxfp4_e4m3(const PrefillCall& call, const PrefillLaunch& launch) {
  return launch_prefill<Mxfp4E4m3, false>(call, launch);
}

}  // namespace gearshift::cuda
