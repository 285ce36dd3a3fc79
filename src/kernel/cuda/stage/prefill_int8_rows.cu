#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_int8_rows(const PrefillCall& call, const PrefillLaunch& launch) {
  return launch_prefill<RowWeights<Math::s8, false>, false>(call, launch);
}

}  // namespace gearshift::cuda
