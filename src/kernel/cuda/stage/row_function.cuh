// The function of stage/row_function.h, in fp32.
#pragma once

#include "kernel/cuda/stage/ptx.cuh"
#include "kernel/cuda/stage/row_function.h"

namespace gearshift::cuda {

GEARSHIFT_DEVICE float function_of(const RowFunction& f, float v) {
  using Kind = RowFunction::Kind;
  if (f.kind == Kind::silu) return v / (1.0f + expf(-f.alpha * v));
  if (f.kind == Kind::gelu) return 0.5f * v * erfcf(v * -0.70710678118654752f);
  if (f.kind == Kind::gelu_tanh) return v / (1.0f + expf(-1.59576912160573071f * (v + 0.044715f * v * v * v)));
  return v < 0 ? 0.0f : v * v;
}
GEARSHIFT_DEVICE float alone_value(const RowFunction& f, float v) {
  return function_of(f, f.limit > 0 && v > f.limit ? f.limit : v);
}
GEARSHIFT_DEVICE float gated_value(const RowFunction& f, float gate, float up) {
  if (f.limit > 0) up = up > f.limit ? f.limit : up < -f.limit ? -f.limit : up;
  return alone_value(f, gate) * (up + f.up_offset);
}

}  // namespace gearshift::cuda
