// Groups of 128 and more: what nearly all checkpoints have.
#include "kernel/cuda/stage/stream.cuh"

namespace gearshift::cuda {

bool launch_stream_int4_128(const StreamCall& call, int tactic, bool zeros, void* stream, bool dependent) {
  if (zeros) return launch_stream<Int4Unit<1, true>, false>(call, tactic, stream, dependent);
  return launch_stream<Int4Unit<1, false>, false>(call, tactic, stream, dependent);
}

}  // namespace gearshift::cuda
