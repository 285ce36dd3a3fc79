#include "kernel/cuda/stage/prefill.cuh"

namespace gearshift::cuda {

bool launch_prefill_codes_int8(const PrefillCall& call, const PrefillLaunch& launch, StreamScales scales, bool half) {
  if (half) return launch_prefill<CodeWeights<Int8Pair<true>, RowScales::none>, true>(call, launch);
  if (scales == StreamScales::one)
    return launch_prefill<CodeWeights<Int8Pair<false>, RowScales::one>, true>(call, launch);
  return launch_prefill<CodeWeights<Int8Pair<false>, RowScales::none>, false>(call, launch);
}

}  // namespace gearshift::cuda
