#include "kernel/cuda/stage/stream.cuh"

namespace gearshift::cuda {

namespace {

template <int Exponent, int Mantissa>
bool launch_fp6(const StreamCall& call, int tactic, bool half, void* stream, bool dependent) {
  constexpr RowScales powers = RowScales::powers;
  return half ? launch_stream<RowTile<FloatCode<Exponent, Mantissa, true>, powers, true>, true>(call, tactic, stream,
                                                                                                dependent)
              : launch_stream<RowTile<FloatCode<Exponent, Mantissa, false>, powers, false>, true>(call, tactic, stream,
                                                                                                  dependent);
}

}  // namespace

bool launch_stream_fp6(const StreamCall& call, int tactic, bool e3m2, bool half, void* stream, bool dependent) {
  return e3m2 ? launch_fp6<3, 2>(call, tactic, half, stream, dependent)
              : launch_fp6<2, 3>(call, tactic, half, stream, dependent);
}

}  // namespace gearshift::cuda
