#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_int4_128(const PrefillCall& call, const PrefillLaunch& launch, bool zeros) {
  if (zeros) return launch_prefill<Bf16Weights<Int4Unit<1, true>>, false>(call, launch);
  return launch_prefill<Bf16Weights<Int4Unit<1, false>>, false>(call, launch);
}

}  // namespace gearshift::cuda
