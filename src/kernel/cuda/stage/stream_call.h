// One launch of the streaming decode kernel, and the formats it exists for.
#pragma once

#include <cstdint>

#include "kernel/cuda/stage/group_tiles.h"
#include "kernel/cuda/stage/row_function.h"

namespace gearshift::cuda {

// What becomes of results of an expert's first projection before they are stored, in the columns of hidden values.
struct StreamFunction {
  enum class Pairs : uint8_t {
    none,   // no function
    alone,  // every row
    rows,   // gate and up in turn
    slabs   // all gates, then all of up: whole slabs each
  };
  Pairs pairs = Pairs::none;
  RowFunction function;
};

struct StreamCall {
  // Units (kernel/layout/rows16.h): the first of the first slab, and the records of its rows, four words each. Rows of
  // code_rows: the first row's codes.
  const uint8_t* units = nullptr;
  const uint32_t* records = nullptr;
  int rows = 0;  // of weights; of units: whole slabs
  int units_along_k = 0, k = 0, m = 0, cluster = 1;
  // Rows of code_rows alone.
  int64_t row_bytes = 0;
  const uint8_t* scales = nullptr;  // of the first row: 4 bytes for every 128 columns (stage/decode_rows.cuh)
  int64_t scale_row_bytes = 0;
  int scale_row_step = 1;  // 0: the rows of a slab share the scales of its first one
  const float* factors = nullptr;
  const float* bias = nullptr;  // nullptr: none
  const int32_t* columns = nullptr;
  const float* x_scales = nullptr;  // of a token, for every 128 columns; nullptr: 1
  int64_t x_scale_stride = 0;       // from token to token

  const uint16_t* x = nullptr;          // bf16 or fp16 [M,K]; rows start on 16 bytes; zeros from k on
  uint16_t* y = nullptr;                // bf16, or fp16 where half_out
  const float* token_factor = nullptr;  // [M]; nullptr: 1
  int64_t x_stride = 0, y_stride = 0;   // elements; x_stride a multiple of 8
  float factor = 1;                     // of every result, besides its row's
  bool half_scales = false;             // 16-bit group scales are fp16, not bf16
  bool half_out = false;
  int alone_bytes = 0;  // shared memory that leaves no room for a second block on a multiprocessor

  // Experts side by side: packed weights above are those of the first one, m is the most rows of a tile, rows of y and
  // of token_factor are sorted ones (the latter those of x, where x_rows says which).
  GroupedTiles group;
  StreamFunction function;  // of groups
};

// Queues the launch; false: the device refuses it. `dependent`: it may start while the launch before it still runs.
// `half`: x is fp16 and multiplied as such.
bool launch_stream_nvfp4(const StreamCall& call, int tactic, bool half, void* stream, bool dependent);
bool launch_stream_mxfp4(const StreamCall& call, int tactic, bool half, void* stream, bool dependent);
// By columns that share a scale: 128 and more, 64, 32; the last two for bf16 alone.
bool launch_stream_int4_128(const StreamCall& call, int tactic, bool zeros, bool half, void* stream, bool dependent);
bool launch_stream_int4_64(const StreamCall& call, int tactic, bool zeros, void* stream, bool dependent);
bool launch_stream_int4_32(const StreamCall& call, int tactic, bool zeros, void* stream, bool dependent);

inline constexpr int stream_row_tile_bytes = 16 * 128, stream_row_scale_bytes = 16 * 4;
// Rows of code_rows, by their scales (call.scales) and by the type of x.
enum class StreamScales : uint8_t { none, one /* fp32 per 128 columns */, powers /* e8m0 per 32 columns */ };
bool launch_stream_e4m3(const StreamCall& call, int tactic, StreamScales scales, bool half, void* stream,
                        bool dependent);
bool launch_stream_int8(const StreamCall& call, int tactic, StreamScales scales, bool half, void* stream,
                        bool dependent);
bool launch_stream_fp6(const StreamCall& call, int tactic, bool e3m2, bool half, void* stream, bool dependent);

}  // namespace gearshift::cuda
