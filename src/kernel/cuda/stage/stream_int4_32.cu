// Groups of 32: fewer tactics, because they are rarely met.
#include "kernel/cuda/stage/stream.cuh"

namespace gearshift::cuda {

bool launch_stream_int4_32(const StreamCall& call, int tactic, bool zeros, void* stream, bool dependent) {
  if (zeros) return launch_stream<Int4Unit<4, true, false>, true>(call, tactic, stream, dependent);
  return launch_stream<Int4Unit<4, false, false>, true>(call, tactic, stream, dependent);
}

}  // namespace gearshift::cuda
