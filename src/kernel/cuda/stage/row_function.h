// What stands between the projections of an expert: f(gate) * (up + offset), or f(up) alone. Clamped where `limit` is
// not 0, the gate from above, up from both sides.
#pragma once

#include <cstdint>

namespace gearshift::cuda {

struct RowFunction {
  enum class Kind : uint8_t { silu, gelu, gelu_tanh, relu2 };
  Kind kind = Kind::silu;
  float alpha = 1, limit = 0, up_offset = 0;
};

}  // namespace gearshift::cuda
