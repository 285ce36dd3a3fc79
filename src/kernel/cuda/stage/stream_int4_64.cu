// Groups of 64: fewer tactics, because they are rarely met.
#include "kernel/cuda/stage/stream.cuh"

namespace gearshift::cuda {

bool launch_stream_int4_64(const StreamCall& call, int tactic, bool zeros, void* stream, bool dependent) {
  if (zeros) return launch_stream<Int4Unit<2, true, false>, true>(call, tactic, stream, dependent);
  return launch_stream<Int4Unit<2, false, false>, true>(call, tactic, stream, dependent);
}

}  // namespace gearshift::cuda
