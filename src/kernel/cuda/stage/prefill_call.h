// One launch of the prefill kernel, and the formats it exists for.
#pragma once

#include <cstdint>

#include "device/tensor_map.h"
#include "kernel/cuda/stage/stream_call.h"

namespace gearshift::cuda {

// What belongs to a row of weights: of RowRecords, four words a row, or of arrays.
struct PrefillRows {
  const float* factors = nullptr;
  const float* bias = nullptr;       // nullptr: none
  const int32_t* columns = nullptr;  // of y; negative: of none
  int step = 1;                      // elements from row to row, in each of them
  int count = 0;
};

struct PrefillCall {
  PrefillRows rows;
  uint16_t* y = nullptr;                // bf16, or fp16 where half_out
  int64_t y_stride = 0;                 // elements
  const float* token_factor = nullptr;  // [M]; nullptr: 1
  float* partials = nullptr;            // [block][rows of a tile][tokens of a tile]; only where tiles are shared
  uint64_t* flags = nullptr;            // [block][4]
  uint64_t ticket = 0;                  // what a set flag holds in this launch
  int units = 0, m = 0;                 // units of 128 columns along K
  int row_tiles = 0, token_tiles = 0;
  int band = 8;              // token tiles that are walked together
  int whole_tiles = 0;       // from the first on; the columns of the others are shared by all blocks in equal parts
  float factor = 1;          // of every result, besides its row's
  bool half_scales = false;  // 16-bit group scales are fp16, not bf16
  bool half_out = false;
  // Scales per 128 columns: of rows of weights [row][unit] (fp32, or four e8m0), and of tokens [unit][token], where
  // rows begin on 16 bytes and may be read a tile past their end.
  const float *row_scales = nullptr, *token_scales = nullptr;
  int64_t row_scale_step = 0, token_scale_step = 0;
  const uint32_t* passes = nullptr;  // not 0: columns may want several (prefill_e4m3.cuh)
};

// What a launch needs besides the call.
struct PrefillLaunch {
  int tactic = 0;  // of the format's table
  int blocks = 0;
  TensorMap x, weights;
  void* stream = nullptr;
};

// Queues the launch; false: the device refuses it. It may start while the launch before it still runs.
// `half`: x is fp16 and multiplied as such.
bool launch_prefill_nvfp4(const PrefillCall& call, const PrefillLaunch& launch, bool half);
bool launch_prefill_mxfp4(const PrefillCall& call, const PrefillLaunch& launch);
// By columns that share a scale: 128 and more, 64, 32; the last two for bf16 alone.
bool launch_prefill_int4_128(const PrefillCall& call, const PrefillLaunch& launch, bool zeros, bool half);
bool launch_prefill_int4_64(const PrefillCall& call, const PrefillLaunch& launch, bool zeros);
bool launch_prefill_int4_32(const PrefillCall& call, const PrefillLaunch& launch, bool zeros);
// In FP8 products with tokens of 8 bits.
bool launch_prefill_mxfp4_e4m3(const PrefillCall& call, const PrefillLaunch& launch);
bool launch_prefill_int4_e4m3(const PrefillCall& call, const PrefillLaunch& launch);
// Rows of code_rows, by their scales; `half` only where they have none.
bool launch_prefill_codes_e4m3(const PrefillCall& call, const PrefillLaunch& launch, StreamScales scales, bool half);
bool launch_prefill_codes_int8(const PrefillCall& call, const PrefillLaunch& launch, StreamScales scales, bool half);
// With e8m0 per 32 columns.
bool launch_prefill_codes_fp6(const PrefillCall& call, const PrefillLaunch& launch, bool e3m2);
// 8-bit codes of weights and tokens, row by row, multiplied as they are. fp8: with scales per 128 columns or without.
bool launch_prefill_fp8_rows(const PrefillCall& call, const PrefillLaunch& launch);
bool launch_prefill_fp8_blocks(const PrefillCall& call, const PrefillLaunch& launch);
bool launch_prefill_int8_rows(const PrefillCall& call, const PrefillLaunch& launch);

}  // namespace gearshift::cuda
