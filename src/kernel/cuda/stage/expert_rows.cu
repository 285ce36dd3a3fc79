#include <cuda_runtime.h>

#include "device/cuda.h"
#include "kernel/cuda/stage/expert_rows.h"
#include "kernel/cuda/stage/launch.cuh"
#include "kernel/cuda/stage/ptx.cuh"
#include "kernel/cuda/stage/row_function.cuh"

namespace gearshift::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kColumns = 8;  // of a thread: 16 bytes
constexpr int kSlots = 4;    // of a token, added up together

template <bool Half>
__device__ float value_of_code(uint16_t code) {
  return Half ? from_f16(code) : from_bf16(code);
}
template <bool Half>
__device__ uint16_t code_of(float value) {
  return Half ? to_f16(value) : to_bf16(value);
}

// Codes [at, at + 8) of a row of `columns`; 0 past its end.
__device__ void load_codes(const uint16_t* row, int64_t at, int64_t columns, uint16_t* codes) {
  if (at + kColumns <= columns && reinterpret_cast<uintptr_t>(row + at) % 16 == 0) {
    const uint4 v = __ldcg(reinterpret_cast<const uint4*>(row + at));
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < kColumns; i++) codes[i] = static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2)));
    return;
  }
#pragma unroll
  for (int i = 0; i < kColumns; i++) codes[i] = at + i < columns ? row[at + i] : uint16_t{0};
}
__device__ void store_codes(uint16_t* row, int64_t at, int64_t columns, const uint16_t* codes) {
  if (at + kColumns <= columns && reinterpret_cast<uintptr_t>(row + at) % 16 == 0) {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) words[i] = codes[2 * i] | static_cast<uint32_t>(codes[2 * i + 1]) << 16;
    *reinterpret_cast<uint4*>(row + at) = make_uint4(words[0], words[1], words[2], words[3]);
    return;
  }
#pragma unroll
  for (int i = 0; i < kColumns; i++) {
    if (at + i < columns) row[at + i] = codes[i];
  }
}

template <bool Half>
__global__ void __launch_bounds__(kThreads) function_kernel(const ApplyFunction call) {
  wait_for_previous_launch();
  let_next_launch_start();  // only now: what starts then may read what stands before this launch
  const int64_t row = blockIdx.x, at = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kColumns;
  if ((call.count != nullptr && row >= __ldcg(call.count)) || at >= call.hidden) return;
  const uint16_t* from = call.projected + row * call.projected_stride;
  const int64_t columns = call.gated ? 2 * call.hidden : call.hidden;
  uint16_t gates[kColumns], ups[kColumns], out[kColumns];
  if (call.gated && call.interleaved) {
    uint16_t low[kColumns], high[kColumns];
    load_codes(from, 2 * at, columns, low);
    load_codes(from, 2 * at + kColumns, columns, high);
#pragma unroll
    for (int i = 0; i < kColumns / 2; i++) {
      gates[i] = low[2 * i];
      ups[i] = low[2 * i + 1];
      gates[kColumns / 2 + i] = high[2 * i];
      ups[kColumns / 2 + i] = high[2 * i + 1];
    }
  } else {
    load_codes(from, at, call.hidden, gates);
    if (call.gated) load_codes(from + call.hidden, at, call.hidden, ups);
  }
#pragma unroll
  for (int i = 0; i < kColumns; i++) {
    const float gate = value_of_code<Half>(gates[i]);
    out[i] = code_of<Half>(call.gated ? gated_value(call.function, gate, value_of_code<Half>(ups[i]))
                                      : alone_value(call.function, gate));
  }
  store_codes(call.out + row * call.out_stride, at, call.hidden, out);
}

// -1: nothing to add.
__device__ int64_t place_of(const CombineRows& call, int64_t entry) {
  if (call.place != nullptr) return __ldcg(call.place + entry);
  const auto expert = static_cast<uint32_t>(__ldcg(call.experts + entry));
  return expert < static_cast<uint32_t>(call.expert_count) ? entry : -1;
}

template <bool Half>
__global__ void __launch_bounds__(kThreads) combine_kernel(const CombineRows call) {
  let_next_launch_start();
  wait_for_previous_launch();
  const int64_t token = blockIdx.x, at = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kColumns;
  if (at >= call.n) return;
  float sums[kColumns] = {};
  for (int slot0 = 0; slot0 < call.top_k; slot0 += kSlots) {
    // Loads of some slots together: one after the other they would take longer than everything else.
    int64_t places[kSlots];
    float weights[kSlots];
    uint16_t codes[kSlots][kColumns];
#pragma unroll
    for (int i = 0; i < kSlots; i++) {
      places[i] = slot0 + i < call.top_k ? place_of(call, token * call.top_k + slot0 + i) : -1;
      weights[i] = slot0 + i < call.top_k ? call.weights[token * call.top_k + slot0 + i] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kSlots; i++) {
      if (places[i] >= 0) load_codes(call.out + places[i] * call.out_stride, at, call.n, codes[i]);
    }
#pragma unroll
    for (int i = 0; i < kSlots; i++) {
#pragma unroll
      for (int j = 0; j < kColumns; j++) {
        if (places[i] >= 0) sums[j] += weights[i] * value_of_code<Half>(codes[i][j]);
      }
    }
  }
  uint16_t codes[kColumns];
#pragma unroll
  for (int i = 0; i < kColumns; i++) codes[i] = code_of<Half>(sums[i]);
  store_codes(call.y + token * call.y_stride, at, call.n, codes);
}

dim3 blocks_for(int64_t columns, int64_t rows) {
  constexpr int64_t wide = kThreads * kColumns;
  return dim3(static_cast<unsigned>(rows), static_cast<unsigned>((columns + wide - 1) / wide));
}

}  // namespace

bool apply_function(const ApplyFunction& call, void* stream) {
  return launch_early(call.half ? function_kernel<true> : function_kernel<false>, blocks_for(call.hidden, call.rows),
                      kThreads, call, limits().major >= 9, static_cast<cudaStream_t>(stream));
}

bool combine_rows(const CombineRows& call, void* stream) {
  return launch_early(call.half ? combine_kernel<true> : combine_kernel<false>, blocks_for(call.n, call.tokens),
                      kThreads, call, limits().major >= 9, static_cast<cudaStream_t>(stream));
}

}  // namespace gearshift::cuda
