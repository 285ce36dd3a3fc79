// Groups of 128 and more: what nearly all checkpoints have.
#include "kernel/cuda/stage/stream.cuh"

namespace gearshift::cuda {

bool launch_stream_int4_128(const StreamCall& call, int tactic, bool zeros, bool half, void* stream, bool dependent) {
  if (half) {
    return zeros ? launch_stream<Int4Unit<1, true, true>, true>(call, tactic, stream, dependent)
                 : launch_stream<Int4Unit<1, false, true>, true>(call, tactic, stream, dependent);
  }
  return zeros ? launch_stream<Int4Unit<1, true, false>, false>(call, tactic, stream, dependent)
               : launch_stream<Int4Unit<1, false, false>, false>(call, tactic, stream, dependent);
}

}  // namespace gearshift::cuda
