#include "kernel/cuda/stage/stream.cuh"

namespace gearshift::cuda {

bool launch_stream_mxfp4(const StreamCall& call, int tactic, void* stream, bool dependent) {
  return launch_stream<Mxfp4Unit, false>(call, tactic, stream, dependent);
}

}  // namespace gearshift::cuda
