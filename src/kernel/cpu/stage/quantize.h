// Activations as the bytes of integer dots: doubled e2m1 codes (2 * e2m1 is an integer in [-12, 12]), or int8.
#pragma once

#include "format/mx.h"
#include "gearshift/kernel.h"

namespace gearshift {

struct E2m1Recipe {
  int64_t group;  // 16: NVFP4 (format/nvfp4.h), with `global`; 32: MXFP4 (format/mx.h), with `rule`
  float global = 1;
  format::MxRule rule = format::MxRule::floor;
};

// x[groups * group] -> codes as many, scales[groups], by the recipe bit for bit. Buffers may lie anywhere.
using QuantizeE2m1 = void (*)(const E2m1Recipe& recipe, const float* x, int64_t groups, int8_t* codes, float* scales);
QuantizeE2m1 quantize_e2m1_for(Isa isa);

// x[count] -> codes as many, by format::int8_encode_dynamic bit for bit; returns the scale. count: a multiple of 32.
using QuantizeInt8 = float (*)(const float* x, int64_t count, int8_t* codes);
QuantizeInt8 quantize_int8_for(Isa isa);

// Elements [first, first + count) of x as fp32.
void load_floats(Isa isa, const ConstMatrix& x, int64_t row, int64_t first, int64_t count, float* out);

// Sums of codes of every unit of 16 or 32 columns: those of columns 0 and 1 of every four in the low half of out[u],
// those of columns 2 and 3 in the high one, both int16.
void sum_halfwords(Isa isa, const int8_t* codes, int64_t unit, int64_t units, uint32_t* out);

}  // namespace gearshift
