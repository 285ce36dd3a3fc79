#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_codes_e4m3(const PrefillCall& call, const PrefillLaunch& launch, StreamScales scales, bool half) {
  using Code = FloatPair<4, 3, false>;
  if (half) return launch_prefill<CodeWeights<FloatPair<4, 3, true>, RowScales::none>, true>(call, launch);
  if (scales == StreamScales::one) return launch_prefill<CodeWeights<Code, RowScales::one>, false>(call, launch);
  if (scales == StreamScales::powers) return launch_prefill<CodeWeights<Code, RowScales::powers>, true>(call, launch);
  return launch_prefill<CodeWeights<Code, RowScales::none>, false>(call, launch);
}

}  // namespace gearshift::cuda
