#include "kernel/cuda/stage/stream.cuh"

namespace gearshift::cuda {

bool launch_stream_nvfp4(const StreamCall& call, int tactic, void* stream, bool dependent) {
  return launch_stream<Nvfp4Unit, false>(call, tactic, stream, dependent);
}

}  // namespace gearshift::cuda
