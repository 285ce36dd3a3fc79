#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_fp8_blocks(const PrefillCall& call, const PrefillLaunch& launch) {
  return launch_prefill<RowWeights<Math::e4m3, true>, false>(call, launch);
}

}  // namespace gearshift::cuda
