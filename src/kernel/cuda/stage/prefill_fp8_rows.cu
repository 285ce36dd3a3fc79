#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_fp8_rows(const PrefillCall& call, const PrefillLaunch& launch) {
  return launch_prefill<RowWeights<Math::e4m3, false>, false>(call, launch);
}

}  // namespace gearshift::cuda
