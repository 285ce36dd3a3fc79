#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_codes_fp6(const PrefillCall& call, const PrefillLaunch& launch, bool e3m2) {
  return e3m2 ? launch_prefill<CodeWeights<FloatPair<3, 2, false>, RowScales::powers>, true>(call, launch)
              : launch_prefill<CodeWeights<FloatPair<2, 3, false>, RowScales::powers>, true>(call, launch);
}

}  // namespace gearshift::cuda
