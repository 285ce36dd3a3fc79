#include <cuda_runtime.h>

#include "kernel/cuda/stage/dependent_launch.h"
#include "kernel/cuda/stage/expert_rows.h"
#include "kernel/cuda/stage/ptx.cuh"

namespace gearshift::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kColumns = 8;  // of a thread: 16 bytes

__device__ float value_of(const RowFunction& f, float v) {
  using Kind = RowFunction::Kind;
  if (f.kind == Kind::silu) return v / (1.0f + expf(-f.alpha * v));
  if (f.kind == Kind::gelu) return 0.5f * v * erfcf(v * -0.70710678118654752f);
  if (f.kind == Kind::gelu_tanh) return v / (1.0f + expf(-1.59576912160573071f * (v + 0.044715f * v * v * v)));
  return v < 0 ? 0.0f : v * v;
}

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
  if (row >= __ldcg(call.count) || at >= call.hidden) return;
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
  const float limit = call.function.limit;
#pragma unroll
  for (int i = 0; i < kColumns; i++) {
    float gate = value_of_code<Half>(gates[i]);
    if (limit > 0 && gate > limit) gate = limit;
    float value = value_of(call.function, gate);
    if (call.gated) {
      float up = value_of_code<Half>(ups[i]);
      if (limit > 0) up = up > limit ? limit : up < -limit ? -limit : up;
      value *= up + call.function.up_offset;
    }
    out[i] = code_of<Half>(value);
  }
  store_codes(call.out + row * call.out_stride, at, call.hidden, out);
}

template <bool Half>
__global__ void __launch_bounds__(kThreads) combine_kernel(const CombineRows call) {
  let_next_launch_start();
  wait_for_previous_launch();
  const int64_t token = blockIdx.x, at = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kColumns;
  if (at >= call.n) return;
  float sums[kColumns] = {};
  for (int slot = 0; slot < call.top_k; slot++) {
    const int32_t place = __ldcg(call.place + token * call.top_k + slot);
    if (place < 0) continue;
    const float weight = call.weights[token * call.top_k + slot];
    uint16_t codes[kColumns];
    load_codes(call.out + place * call.out_stride, at, call.n, codes);
#pragma unroll
    for (int i = 0; i < kColumns; i++) sums[i] += weight * value_of_code<Half>(codes[i]);
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
  return launch_dependent(call.half ? function_kernel<true> : function_kernel<false>,
                          blocks_for(call.hidden, call.rows), kThreads, stream, call);
}

bool combine_rows(const CombineRows& call, void* stream) {
  return launch_dependent(call.half ? combine_kernel<true> : combine_kernel<false>, blocks_for(call.n, call.tokens),
                          kThreads, stream, call);
}

}  // namespace gearshift::cuda
