#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_int4_e4m3(const PrefillCall& call, const PrefillLaunch& launch) {
  return launch_prefill<Int4E4m3, false>(call, launch);
}

}  // namespace gearshift::cuda
