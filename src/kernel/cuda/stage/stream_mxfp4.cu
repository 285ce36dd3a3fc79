#include "kernel/cuda/stage/stream.cuh"

namespace gearshift::cuda {

bool launch_stream_mxfp4(const StreamCall& call, int tactic, bool half, void* stream, bool dependent) {
  if (half) return launch_stream<Mxfp4Unit<true>, true>(call, tactic, stream, dependent);
  return launch_stream<Mxfp4Unit<false>, false>(call, tactic, stream, dependent);
}

}  // namespace gearshift::cuda
