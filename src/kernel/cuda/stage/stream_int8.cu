#include "kernel/cuda/stage/stream.cuh"

namespace gearshift::cuda {

bool launch_stream_int8(const StreamCall& call, int tactic, StreamScales scales, bool half, void* stream,
                        bool dependent) {
  constexpr RowScales none = RowScales::none, one = RowScales::one;
  if (scales == StreamScales::one) {
    return half ? launch_stream<RowTile<Int8Code<true>, one, true>, true>(call, tactic, stream, dependent)
                : launch_stream<RowTile<Int8Code<false>, one, false>, true>(call, tactic, stream, dependent);
  }
  return half ? launch_stream<RowTile<Int8Code<true>, none, true>, true>(call, tactic, stream, dependent)
              : launch_stream<RowTile<Int8Code<false>, none, false>, false>(call, tactic, stream, dependent);
}

}  // namespace gearshift::cuda
