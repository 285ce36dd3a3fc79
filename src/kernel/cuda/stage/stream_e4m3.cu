#include "kernel/cuda/stage/stream.cuh"

namespace gearshift::cuda {

bool launch_stream_e4m3(const StreamCall& call, int tactic, StreamScales scales, bool half, void* stream,
                        bool dependent) {
  constexpr RowScales none = RowScales::none, one = RowScales::one, powers = RowScales::powers;
  using Code = FloatCode<4, 3, false>;
  using HalfCode = FloatCode<4, 3, true>;
  if (scales == StreamScales::one) {
    return half ? launch_stream<RowTile<HalfCode, one, true>, true>(call, tactic, stream, dependent)
                : launch_stream<RowTile<Code, one, false>, false>(call, tactic, stream, dependent);
  }
  if (scales == StreamScales::powers) {
    return half ? launch_stream<RowTile<HalfCode, powers, true>, true>(call, tactic, stream, dependent)
                : launch_stream<RowTile<Code, powers, false>, false>(call, tactic, stream, dependent);
  }
  return half ? launch_stream<RowTile<HalfCode, none, true>, true>(call, tactic, stream, dependent)
              : launch_stream<RowTile<Code, none, false>, false>(call, tactic, stream, dependent);
}

}  // namespace gearshift::cuda
