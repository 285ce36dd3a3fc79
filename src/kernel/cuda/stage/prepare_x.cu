// The quantizers are those of src/format, compiled for the device, so that codes and scales are the same to the bit.
#include <cuda_runtime.h>

#include "format/bf16.h"
#include "format/fp8.h"
#include "format/int8.h"
#include "format/mx.h"
#include "format/nvfp4.h"
#include "kernel/cuda/stage/prepare_x.h"
#include "kernel/cuda/stage/ptx.cuh"

namespace gearshift::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kColumns = 8;  // of one thread at a time: 16 bytes of bf16

struct Block {
  float v[kColumns];
};

template <DType Type>
__device__ float load_one(const void* x, int64_t at) {
  if constexpr (Type == DType::f32) return static_cast<const float*>(x)[at];
  const uint16_t code = static_cast<const uint16_t*>(x)[at];
  return Type == DType::f16 ? from_f16(code) : from_bf16(code);
}

// Columns [c, c + 8) of a row, zeros past K, times the pre-scale.
template <DType Type>
__device__ Block load_block(const PrepareX& p, int64_t row, int64_t c) {
  Block block;
  if constexpr (Type != DType::f32) {
    // One load for all eight, where they lie side by side on 16 bytes.
    const auto* from = static_cast<const uint16_t*>(p.x) + row * p.stride + c;
    if (p.gather == nullptr && p.pre_scale == nullptr && c + kColumns <= p.k &&
        reinterpret_cast<uintptr_t>(from) % 16 == 0) {
      const uint4 v = *reinterpret_cast<const uint4*>(from);
      const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < kColumns; i++) {
        const auto code = static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2)));
        block.v[i] = Type == DType::f16 ? from_f16(code) : from_bf16(code);
      }
      return block;
    }
  }
#pragma unroll
  for (int i = 0; i < kColumns; i++) {
    float value = 0;
    if (c + i < p.k) {
      const int64_t from = p.gather != nullptr ? p.gather[c + i] : c + i;
      value = load_one<Type>(p.x, row * p.stride + from);
      if (p.pre_scale != nullptr) value *= p.pre_scale[from];
    }
    block.v[i] = value;
  }
  return block;
}

__device__ float amax_of(const Block& block) { return format::abs_max(block.v, kColumns); }

__device__ float larger(float a, float b) { return b > a ? b : a; }

// Codes of a format; as floats, which hold them exactly.
__device__ float encode(Format element, float x) {
  switch (element) {
    case Format::e2m1:
      return format::encode_e2m1(x);
    case Format::e2m3:
      return format::encode_e2m3(x);
    case Format::e3m2:
      return format::encode_e3m2(x);
    case Format::e5m2:
      return format::encode_e5m2(x);
    default:
      return format::encode_e4m3(x);
  }
}
__device__ float decode(Format element, uint8_t code) {
  switch (element) {
    case Format::e2m1:
      return format::decode_e2m1(code);
    case Format::e2m3:
      return format::decode_e2m3(code);
    case Format::e3m2:
      return format::decode_e3m2(code);
    case Format::e5m2:
      return format::decode_e5m2(code);
    default:
      return format::decode_e4m3(code);
  }
}
// x in units of its scale, as a code or as the value of the code.
template <bool Codes>
__device__ float round_to(Format element, float x) {
  const float code = encode(element, x);
  return Codes ? code : decode(element, static_cast<uint8_t>(code));
}
__device__ float largest_of(Format element) {
  switch (element) {
    case Format::e2m1:
      return format::e2m1_max;
    case Format::e2m3:
      return format::e2m3_max;
    case Format::e3m2:
      return format::e3m2_max;
    case Format::e5m2:
      return format::e5m2_max;
    default:
      return format::e4m3_max;
  }
}
__device__ format::MxRule mx_rule(ScaleRule rule) {
  if (rule == ScaleRule::e8m0_ceil) return format::MxRule::ceil;
  return rule == ScaleRule::e8m0_even ? format::MxRule::even : format::MxRule::floor;
}

struct GroupScale {
  float value;
  uint8_t byte;  // nvfp4, mx: its code
};

// A group whose largest magnitude is amax, in units of the scale that is returned.
template <bool Codes>
__device__ GroupScale quantize_group(const PrepareX& p, float amax, Block& block) {
  if (p.recipe == XRecipe::nvfp4) {
    const uint8_t scale = format::nvfp4_scale(amax, p.global);
    const float factor = format::nvfp4_factor(scale, p.global);
    for (float& v : block.v) v = factor == 0 ? 0 : round_to<Codes>(Format::e2m1, v * factor);
    return {format::decode_e4m3(scale), scale};
  }
  if (p.recipe == XRecipe::mx) {
    const format::MxElement element{largest_of(p.format), nullptr, nullptr};
    const uint8_t scale = format::mx_scale(amax, mx_rule(p.rule), element);
    const float factor = format::mx_factor(scale);
    for (float& v : block.v) v = round_to<Codes>(p.format, v * factor);
    return {format::decode_e8m0(scale), scale};
  }
  if (p.recipe == XRecipe::fp8_group) {
    const float scale =
        p.rule == ScaleRule::amax_pow2 ? format::fp8_group_scale_ue8m0(amax) : format::fp8_group_scale(amax);
    for (float& v : block.v) v = round_to<Codes>(Format::e4m3, v / scale);
    return {scale, 0};
  }
  const float inverse = amax == 0 ? 0 : 127.0f / amax;
  for (float& v : block.v) v = static_cast<float>(format::clamp_int(format::round_to_int(v * inverse), -128, 127));
  return {amax / 127.0f, 0};
}

__device__ void store_group_scale(const PrepareX& p, int64_t row, int64_t group, const GroupScale& scale) {
  if (p.group_scales != nullptr) p.group_scales[row * p.group_scale_row + group * p.group_scale_step] = scale.value;
  if (p.scale_bytes == nullptr) return;
  const int64_t quads = (p.k / p.group + (p.k % p.group != 0) + 3) / 4;
  const int64_t at = p.scale_order == ScaleOrder::rows
                         ? row * quads * 4 + group
                         : (row / 128 * quads + group / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + group % 4;
  p.scale_bytes[at] = scale.byte;
}

// What holds for a whole row, or for the tensor.
struct RowScale {
  float scale = 1, inverse = 0;
  int32_t zero_point = 0;
};

template <bool Codes>
__device__ void quantize_with(const PrepareX& p, const RowScale& s, Block& block) {
  for (float& v : block.v) {
    switch (p.recipe) {
      case XRecipe::fp8_token:
        v = round_to<Codes>(Format::e4m3, v / s.scale);
        break;
      case XRecipe::fp8_tensor:
        v = s.scale > 0 ? round_to<Codes>(Format::e4m3, v / s.scale) : 0;
        break;
      case XRecipe::int8_token:
        v = static_cast<float>(format::clamp_int(format::round_to_int(v * s.inverse), -128, 127));
        break;
      case XRecipe::int8_token_asymmetric:
      case XRecipe::int8_tensor: {
        const format::IntScale scale{s.scale, s.zero_point};
        const int64_t code = s.scale > 0 ? format::int8_encode_value(v, scale) : s.zero_point;
        v = static_cast<float>(Codes ? code : code - s.zero_point);
        break;
      }
      default:
        break;
    }
  }
}

template <class Out>
__device__ void store_block(const PrepareX& p, int64_t row, int64_t c, const Block& block) {
  if constexpr (sizeof(Out) == 1) {
    uint32_t word[2] = {};
    const bool nibbles = p.recipe == XRecipe::nvfp4 || (p.recipe == XRecipe::mx && p.format == Format::e2m1);
#pragma unroll
    for (int i = 0; i < kColumns; i++) {
      const uint32_t code = c + i < p.k ? static_cast<uint32_t>(static_cast<int>(block.v[i])) & 255u : 0;
      if (nibbles)
        word[0] |= code << (4 * i);
      else
        word[i / 4] |= code << (8 * (i % 4));
    }
    uint8_t* to = static_cast<uint8_t*>(p.out) + (nibbles ? (row * p.columns + c) / 2 : row * p.columns + c);
    if (nibbles)
      *reinterpret_cast<uint32_t*>(to) = word[0];
    else
      *reinterpret_cast<uint2*>(to) = make_uint2(word[0], word[1]);
  } else {
    Out* out = static_cast<Out*>(p.out) + row * p.columns + c;
    const bool half = p.out_dtype == DType::f16;
#pragma unroll
    for (int i = 0; i < kColumns; i++) {
      const float value = c + i < p.k ? block.v[i] : 0;
      if (c + i >= p.columns) return;
      if constexpr (sizeof(Out) == 2)
        out[i] = half ? to_f16(value) : to_bf16(value);
      else
        out[i] = value;
    }
  }
}

// The row's scale, made by all threads of the block.
template <DType Type>
__device__ RowScale scale_of_row(const PrepareX& p, int64_t row) {
  __shared__ float low[kThreads / 32], high[kThreads / 32], most[kThreads / 32];
  float amax = 0;
  format::Range range{INFINITY, -INFINITY};
  for (int64_t c = threadIdx.x * kColumns; c < p.k; c += kThreads * kColumns) {
    const Block block = load_block<Type>(p, row, c);
    amax = larger(amax, amax_of(block));
    for (int i = 0; i < kColumns && c + i < p.k; i++) {
      if (block.v[i] != block.v[i]) continue;
      range.min = block.v[i] < range.min ? block.v[i] : range.min;
      range.max = block.v[i] > range.max ? block.v[i] : range.max;
    }
  }
  for (int step = 16; step > 0; step /= 2) {
    amax = larger(amax, __shfl_xor_sync(~0u, amax, step));
    range.min = fminf(range.min, __shfl_xor_sync(~0u, range.min, step));
    range.max = fmaxf(range.max, __shfl_xor_sync(~0u, range.max, step));
  }
  if (threadIdx.x % 32 == 0) {
    most[threadIdx.x / 32] = amax;
    low[threadIdx.x / 32] = range.min;
    high[threadIdx.x / 32] = range.max;
  }
  __syncthreads();
  for (int i = 0; i < kThreads / 32; i++) {
    amax = larger(amax, most[i]);
    range.min = fminf(range.min, low[i]);
    range.max = fmaxf(range.max, high[i]);
  }
  if (range.min > range.max) range = {0, 0};  // nothing but NaN
  RowScale out;
  if (p.recipe == XRecipe::fp8_token) {
    out.scale = format::fp8_token_scale(amax, p.amax_limit);
  } else if (p.recipe == XRecipe::int8_token) {
    out.inverse = amax == 0 ? 0 : 127.0f / amax;
    out.scale = amax / 127.0f;
  } else {
    const format::IntScale scale = format::int8_asymmetric_scale(range);
    out.scale = scale.scale;
    out.zero_point = scale.zero_point;
  }
  return out;
}

__device__ RowScale scale_of_tensor(const PrepareX& p) {
  RowScale out;
  out.scale = p.scale;
  out.zero_point = p.has_zero_point ? p.zero_point : 0;
  if (p.amax != nullptr) {
    const float amax = __uint_as_float(*p.amax);
    out.scale = p.recipe == XRecipe::int8_tensor ? amax / 127.0f : format::fp8_scale(amax);
  }
  return out;
}

// Of all threads of the block; one block has the whole row.
__device__ void store_row_sum(const PrepareX& p, int64_t row, int32_t sum) {
  __shared__ int32_t sums[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kThreads / 32; i++) sum += sums[i];
  p.row_sums[row] = sum;
}

template <DType Type, class Out>
__global__ void __launch_bounds__(kThreads) prepare_kernel(const PrepareX p) {
  let_next_launch_start();
  wait_for_previous_launch();
  const int64_t row = blockIdx.x;
  const bool by_token = p.recipe >= XRecipe::fp8_token && p.recipe <= XRecipe::int8_token_asymmetric;
  const bool by_tensor = p.recipe >= XRecipe::fp8_tensor;
  const bool by_group = p.recipe != XRecipe::none && !by_token && !by_tensor;
  constexpr bool codes = sizeof(Out) == 1;
  RowScale scale;
  if (by_token) scale = scale_of_row<Type>(p, row);
  if (by_tensor) scale = scale_of_tensor(p);
  if (threadIdx.x == 0 && blockIdx.y == 0) {
    if (p.token_factor != nullptr) p.token_factor[row] = scale.scale > 0 ? scale.scale : 0;
    if (p.zero_points != nullptr) p.zero_points[row] = scale.zero_point;
  }
  const int64_t step = static_cast<int64_t>(kThreads) * kColumns * gridDim.y;
  // A group of 8 * 2^i columns belongs to neighbouring lanes; all lanes stay for the exchange.
  const int lanes = static_cast<int>(p.group / kColumns);
  const int64_t rounds = (p.columns + step - 1) / step;
  int32_t sum = 0;
  for (int64_t i = 0; i < rounds; i++) {
    const int64_t c = i * step + (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kColumns;
    Block block = load_block<Type>(p, row, c);
    if (by_group) {
      float amax = amax_of(block);
      for (int other = 1; other < lanes; other *= 2) amax = larger(amax, __shfl_xor_sync(~0u, amax, other));
      const GroupScale group = quantize_group<codes>(p, amax, block);
      if (p.group_scales != nullptr || p.scale_bytes != nullptr) {
        if (c % p.group == 0 && c < p.k) store_group_scale(p, row, c / p.group, group);
      } else if (!codes) {
        for (float& v : block.v) v *= group.value;
      }
    } else {
      quantize_with<codes>(p, scale, block);
    }
    if (codes && p.row_sums != nullptr)
      for (int j = 0; j < kColumns; j++) sum += c + j < p.k ? static_cast<int32_t>(block.v[j]) : 0;
    if (c < p.columns) store_block<Out>(p, row, c, block);
  }
  if (codes && p.row_sums != nullptr) store_row_sum(p, row, sum);
}

template <DType Type>
__global__ void __launch_bounds__(kThreads) amax_kernel(const PrepareX p, uint32_t* amax) {
  float most = 0;
  for (int64_t c = threadIdx.x * kColumns; c < p.k; c += kThreads * kColumns)
    most = larger(most, amax_of(load_block<Type>(p, blockIdx.x, c)));
  for (int step = 16; step > 0; step /= 2) most = larger(most, __shfl_xor_sync(~0u, most, step));
  // Floats of one sign are ordered like their bits.
  if (threadIdx.x % 32 == 0) atomicMax(amax, __float_as_uint(most));
}

template <DType Type>
void launch_prepare(const PrepareX& p, cudaStream_t stream) {
  const int64_t blocks_of_row = p.rows >= 264 ? 1 : (p.columns + kThreads * kColumns - 1) / (kThreads * kColumns);
  const bool by_token = p.recipe >= XRecipe::fp8_token && p.recipe <= XRecipe::int8_token_asymmetric;
  const bool alone = (by_token && p.rows > 16) || p.row_sums != nullptr;
  const dim3 grid(static_cast<unsigned>(p.rows), static_cast<unsigned>(alone ? 1 : blocks_of_row));
  if (p.out_dtype == DType::u8)
    prepare_kernel<Type, uint8_t><<<grid, kThreads, 0, stream>>>(p);
  else if (p.out_dtype == DType::f32)
    prepare_kernel<Type, float><<<grid, kThreads, 0, stream>>>(p);
  else
    prepare_kernel<Type, uint16_t><<<grid, kThreads, 0, stream>>>(p);
}

}  // namespace

bool prepare_x(const PrepareX& p, void* stream) {
  if (p.rows == 0) return true;
  const auto queue = static_cast<cudaStream_t>(stream);
  if (p.dtype == DType::f32)
    launch_prepare<DType::f32>(p, queue);
  else if (p.dtype == DType::f16)
    launch_prepare<DType::f16>(p, queue);
  else
    launch_prepare<DType::bf16>(p, queue);
  return cudaGetLastError() == cudaSuccess;
}

bool clear_bytes(uint8_t* at, int64_t count, void* stream) {
  return cudaMemsetAsync(at, 0, static_cast<size_t>(count), static_cast<cudaStream_t>(stream)) == cudaSuccess;
}

bool find_amax(const PrepareX& p, uint32_t* amax, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  if (cudaMemsetAsync(amax, 0, sizeof *amax, queue) != cudaSuccess) return false;
  const auto rows = static_cast<unsigned>(p.rows);
  if (p.dtype == DType::f32)
    amax_kernel<DType::f32><<<rows, kThreads, 0, queue>>>(p, amax);
  else if (p.dtype == DType::f16)
    amax_kernel<DType::f16><<<rows, kThreads, 0, queue>>>(p, amax);
  else
    amax_kernel<DType::bf16><<<rows, kThreads, 0, queue>>>(p, amax);
  return cudaGetLastError() == cudaSuccess;
}

}  // namespace gearshift::cuda
