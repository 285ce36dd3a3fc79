// The fp32 product of two row-major tiles: acc[m,n] += sum over k of x[m,k] * w[n,k].
#pragma once

#include <cstdint>

#include "gearshift/device.h"

namespace gearshift {

// Columns are handled in steps of this many; tiles are zero up to a multiple of it.
inline constexpr int64_t kMultiplyStep = 16;

struct Tiles {
  const float* x;    // [m][x_stride], 64-byte aligned rows
  int64_t x_stride;  // elements
  int64_t m;
  const float* w;  // [n][w_stride], 64-byte aligned rows
  int64_t w_stride;
  int64_t n;
  int64_t k;   // a multiple of kMultiplyStep
  float* acc;  // [m][acc_stride]
  int64_t acc_stride;
};
using Multiply = void (*)(const Tiles& tiles);

// The best one that `isa` can execute. In each, the additions that make acc[m,n] and their order depend on k alone, so
// a row's bits are the same among any other rows. Every lane sums k / lanes products before lanes are joined: callers
// keep k short (512), so that rounding errors grow with that, not with all of K.
Multiply multiply_for(Isa isa);

}  // namespace gearshift
