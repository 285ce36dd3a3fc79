// One launch of the streaming decode kernel, and the formats it exists for.
#pragma once

#include <cstdint>

namespace gearshift::cuda {

struct StreamCall {
  const uint8_t* units = nullptr;       // first unit of the first slab
  const uint32_t* records = nullptr;    // RowRecords of the same slabs, four words each
  const uint16_t* x = nullptr;          // bf16 [M,K]; rows start on 16 bytes
  uint16_t* y = nullptr;                // bf16
  const float* token_factor = nullptr;  // [M]; nullptr: 1
  int64_t x_stride = 0, y_stride = 0;   // elements; x_stride a multiple of 8
  int slabs = 0, units_along_k = 0, k = 0, m = 0, cluster = 1;
  float factor = 1;          // of every result, besides its record's
  bool half_scales = false;  // 16-bit group scales are fp16, not bf16
  int alone_bytes = 0;       // shared memory that leaves no room for a second block on a multiprocessor
};

// Queues the launch; false: the device refuses it. `dependent`: it may start while the launch before it still runs.
bool launch_stream_nvfp4(const StreamCall& call, int tactic, void* stream, bool dependent);
bool launch_stream_mxfp4(const StreamCall& call, int tactic, void* stream, bool dependent);
// By columns that share a scale: 128 and more, 64, 32.
bool launch_stream_int4_128(const StreamCall& call, int tactic, bool zeros, void* stream, bool dependent);
bool launch_stream_int4_64(const StreamCall& call, int tactic, bool zeros, void* stream, bool dependent);
bool launch_stream_int4_32(const StreamCall& call, int tactic, bool zeros, void* stream, bool dependent);

}  // namespace gearshift::cuda
