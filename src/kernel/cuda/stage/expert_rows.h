// What stands between and behind the projections of experts, on sorted rows.
#pragma once

#include <cstdint>

#include "kernel/cuda/stage/row_function.h"

namespace gearshift::cuda {

// out[row, i] = f(gate) * (up + offset), or f(up) alone; one rounding. Elements are bf16, or fp16 where `half`.
struct ApplyFunction {
  RowFunction function;
  bool gated = true, interleaved = false, half = false;
  const uint16_t* projected = nullptr;  // [rows, 2 hidden] or [rows, hidden]
  uint16_t* out = nullptr;              // [rows, hidden]
  int64_t projected_stride = 0, out_stride = 0, hidden = 0;
  int rows = 0;
  const int32_t* count = nullptr;  // how many of the rows there are, on the device; nullptr: all
};
bool apply_function(const ApplyFunction& call, void* stream);

// y[token] = sum over its slots, in order, of weight * out[place]; fp32, one rounding.
struct CombineRows {
  const uint16_t* out = nullptr;  // [sorted row, n]
  uint16_t* y = nullptr;
  int64_t out_stride = 0, y_stride = 0, n = 0;
  int64_t tokens = 0;
  int top_k = 1;
  const int32_t* place = nullptr;    // [tokens * top_k]; -1: nothing to add; nullptr: entries stand in their own order,
  const int32_t* experts = nullptr;  // and there is nothing to add for those of none of `expert_count` experts
  int expert_count = 0;
  const float* weights = nullptr;  // [tokens * top_k]
  bool half = false;
};
bool combine_rows(const CombineRows& call, void* stream);

}  // namespace gearshift::cuda
