// The quantizers are those of src/format, compiled for the device, so that codes and scales are the same to the bit.
#include "kernel/cuda/stage/prepare_x.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "device/cuda.h"
#include "kernel/cuda/stage/launch.cuh"
#include "kernel/cuda/stage/ptx.cuh"
#include "kernel/cuda/stage/quantize_block.cuh"

namespace gearshift::cuda {

namespace {

constexpr int kThreads = 256;
// Blocks of a multiprocessor that run at once. The columns of a row are shared by several blocks; where the row has one
// scale each of them looks at all of it, which is worth it while blocks would stand idle otherwise.
constexpr int64_t kBlocksAtOnce = 8;

// ---- reading ----

template <DType Type>
__device__ float load_one(const void* x, int64_t at) {
  const uint16_t code = static_cast<const uint16_t*>(x)[at];
  return Type == DType::f16 ? from_f16(code) : from_bf16(code);
}

// Columns [c, c + 8) of a row whose blocks lie on 16 bytes each (PrepareX::blocks_of_16_bytes), zeros past K.
template <DType Type>
__device__ Block load_words(const PrepareX& p, int64_t row, int64_t c) {
  Block block{};
  if (c >= p.k) return block;
  const uint4 v = *reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(p.x) + row * p.stride + c);
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < kColumns; i++) {
    const auto code = static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2)));
    block.v[i] = Type == DType::f16 ? from_f16(code) : from_bf16(code);
  }
  return block;
}
// Of any row, times the pre-scale.
template <DType Type>
__device__ Block load_each(const PrepareX& p, int64_t row, int64_t c) {
  Block block;
#pragma unroll
  for (int i = 0; i < kColumns; i++) {
    float value = 0;
    if (c + i < p.k) {
      const int64_t at = p.gather != nullptr ? p.gather[c + i] : c + i;
      value = load_one<Type>(p.x, row * p.stride + at);
      if (p.pre_scale != nullptr) value *= p.pre_scale[at];
    }
    block.v[i] = value;
  }
  return block;
}
template <DType Type>
__device__ Block load_block(const PrepareX& p, int64_t row, int64_t c) {
  return p.blocks_of_16_bytes ? load_words<Type>(p, row, c) : load_each<Type>(p, row, c);
}
// Calls look(block, c) for all blocks of a row, shared among the threads of a block, several loads at once.
template <DType Type, class Look>
__device__ void look_at_row(const PrepareX& p, int64_t row, const Look& look) {
  constexpr int64_t step = kThreads * kColumns;
  if (p.blocks_of_16_bytes) {
#pragma unroll 4
    for (int64_t c = threadIdx.x * kColumns; c < p.k; c += step) look(load_words<Type>(p, row, c), c);
  } else {
#pragma unroll 1
    for (int64_t c = threadIdx.x * kColumns; c < p.k; c += step) look(load_each<Type>(p, row, c), c);
  }
}

// ---- ranges: NaN is passed over ----

__device__ float amax_of(const Block& block) {
  float amax = 0;
#pragma unroll
  for (const float v : block.v) amax = fmaxf(amax, fabsf(v));
  return amax;
}

// Of all threads of the block. Slot: one for each use in a kernel.
template <int Slot>
__device__ float largest_in_block(float v) {
  __shared__ float of_warp[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, step));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
#pragma unroll
  for (const float w : of_warp) v = fmaxf(v, w);
  return v;
}

struct Seen {
  float amax = 0;
  format::Range range{INFINITY, -INFINITY};
};
template <Quantizer Q>
__device__ void look_at(const PrepareX& p, const Block& block, int64_t c, Seen& seen) {
  if constexpr (Q != Quantizer::int8_affine) {
    seen.amax = fmaxf(seen.amax, amax_of(block));
  } else {
    for (int i = 0; i < kColumns && c + i < p.k; i++) {
      seen.range.min = fminf(seen.range.min, block.v[i]);
      seen.range.max = fmaxf(seen.range.max, block.v[i]);
    }
  }
}

template <Quantizer Q>
__device__ RowScale scale_of_row(const PrepareX& p, Seen seen) {
  RowScale out;
  if constexpr (Q == Quantizer::int8_affine) {
    format::Range range{-largest_in_block<0>(-seen.range.min), largest_in_block<1>(seen.range.max)};
    if (range.min > range.max) range = {0, 0};  // nothing but NaN
    const format::IntScale scale = format::int8_asymmetric_scale(range);
    out.scale = scale.scale;
    out.zero_point = scale.zero_point;
  } else {
    const float amax = largest_in_block<0>(seen.amax);
    if constexpr (Q == Quantizer::e4m3) {
      out.scale = format::fp8_token_scale(amax, p.amax_limit);
    } else {
      out.inverse = amax == 0 ? 0 : 127.0f / amax;
      out.scale = amax / 127.0f;
    }
  }
  return out;
}

template <Quantizer Q>
__device__ RowScale scale_of_tensor(const PrepareX& p) {
  RowScale out;
  out.scale = p.scale;
  out.zero_point = p.has_zero_point ? p.zero_point : 0;
  if (p.amax != nullptr) {
    const float amax = largest_in_block<0>(threadIdx.x < p.amax_count ? p.amax[threadIdx.x] : 0);
    out.scale = Q == Quantizer::int8_affine ? amax / 127.0f : format::fp8_scale(amax);
  }
  return out;
}

// ---- writing ----

__device__ void store_group_scale(const PrepareX& p, int64_t row, int64_t group, const GroupScale& scale) {
  if (p.group_scales != nullptr) p.group_scales[row * p.group_scale_row + group * p.group_scale_step] = scale.value;
  if (p.scale_bytes == nullptr) return;
  const int64_t quads = (p.k / p.group + (p.k % p.group != 0) + 3) / 4;
  const int64_t at = p.scale_order == ScaleOrder::rows
                         ? row * quads * 4 + group
                         : (row / 128 * quads + group / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + group % 4;
  p.scale_bytes[at] = scale.byte;
}

// Columns [c, c + 8), zeros past K. `out` begins on 64 bytes and rows are whole blocks.
template <class Out>
__device__ void store_block(const PrepareX& p, int64_t row, int64_t c, Block block) {
#pragma unroll
  for (int i = 0; i < kColumns; i++)
    if (c + i >= p.k) block.v[i] = 0;
  const int64_t at = row * p.columns + c;
  if constexpr (sizeof(Out) == 1) {
    const bool nibbles = p.recipe == XRecipe::nvfp4 || (p.recipe == XRecipe::mx && p.format == Format::e2m1);
    uint32_t word[2] = {};
#pragma unroll
    for (int i = 0; i < kColumns; i++) {
      const uint32_t code = __float_as_uint(block.v[i]) & 255u;
      if (nibbles)
        word[0] |= code << (4 * i);
      else
        word[i / 4] |= code << (8 * (i % 4));
    }
    auto* out = static_cast<uint8_t*>(p.out);
    if (nibbles)
      *reinterpret_cast<uint32_t*>(out + at / 2) = word[0];
    else
      *reinterpret_cast<uint2*>(out + at) = make_uint2(word[0], word[1]);
  } else if constexpr (sizeof(Out) == 2) {
    uint32_t word[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      word[i] = p.out_dtype == DType::f16 ? pack_f16(block.v[2 * i], block.v[2 * i + 1])
                                          : pack_bf16(block.v[2 * i], block.v[2 * i + 1]);
    *reinterpret_cast<uint4*>(static_cast<uint16_t*>(p.out) + at) = make_uint4(word[0], word[1], word[2], word[3]);
  } else {
    auto* out = reinterpret_cast<float4*>(static_cast<float*>(p.out) + at);
    out[0] = make_float4(block.v[0], block.v[1], block.v[2], block.v[3]);
    out[1] = make_float4(block.v[4], block.v[5], block.v[6], block.v[7]);
  }
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

// ---- kernels ----

// Points p at the row of x that this one is made from, and at its expert's scalars. False: there is no such row.
template <DType Type>
__device__ bool choose_row(PrepareX& p, int64_t row) {
  if (row >= __ldcg(p.chosen.count)) return false;
  if (p.chosen.source != nullptr) {
    constexpr int64_t bytes = Type == DType::f32 ? 4 : 2;
    p.x = static_cast<const uint8_t*>(p.x) + (__ldcg(p.chosen.source + row) - row) * p.stride * bytes;
  }
  if (p.chosen.scalars == nullptr) return true;
  const ExpertScalars own = p.chosen.scalars[__ldcg(p.chosen.expert + row)];
  p.global = own.global;
  p.scale = own.scale;
  p.zero_point = own.zero_point;
  return true;
}

template <DType Type, class Out, Quantizer Q>
__global__ void __launch_bounds__(kThreads) prepare_kernel(const PrepareX given) {
  let_next_launch_start();
  wait_for_previous_launch();
  PrepareX p = given;
  if (p.chosen.count != nullptr && !choose_row<Type>(p, blockIdx.x)) return;
  constexpr bool codes = sizeof(Out) == 1;
  const int64_t row = blockIdx.x;
  RowScale scale;
  if (by_token(p.recipe)) {
    // All of the row; the second look finds it in the first-level cache.
    Seen seen;
    look_at_row<Type>(p, row, [&](const Block& block, int64_t c) { look_at<Q>(p, block, c, seen); });
    scale = scale_of_row<Q>(p, seen);
  } else if (by_tensor(p.recipe)) {
    scale = scale_of_tensor<Q>(p);
  }
  if (threadIdx.x == 0 && blockIdx.y == 0) {
    if (p.token_factor != nullptr) {
      const bool of_expert = p.chosen.scalars != nullptr;
      p.token_factor[row] = of_expert         ? p.chosen.scalars[__ldcg(p.chosen.expert + row)].factor
                            : scale.scale > 0 ? scale.scale
                                              : 0;
    }
    if (p.zero_points != nullptr) p.zero_points[row] = scale.zero_point;
  }

  format::MinifloatRounding element;
  if constexpr (Q == Quantizer::mx) element = rounding_to(p.format);
  if constexpr (Q == Quantizer::nvfp4) element = format::rounding_of<format::e2m1_format>();
  if constexpr (Q == Quantizer::e4m3) element = format::rounding_of<format::e4m3_format>();
  // A group of 8 * 2^i columns belongs to neighbouring lanes; all lanes stay for the exchange.
  const int lanes = static_cast<int>(p.group / kColumns);
  int32_t sum = 0;
  const int64_t step = static_cast<int64_t>(kThreads) * kColumns * gridDim.y;
  const auto rounds = static_cast<int>((p.columns + step - 1) / step);
  int64_t c = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kColumns;
#pragma unroll 1
  for (int i = 0; i < rounds; i++, c += step) {
    Block block = load_block<Type>(p, row, c);
    if (by_group(p.recipe)) {
      if constexpr (Q != Quantizer::none && Q != Quantizer::int8_affine) {
        float amax = amax_of(block);
        for (int other = 1; other < lanes; other *= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, other));
        const GroupScale group = quantize_group<Q, codes>(p, element, amax, block);
        if (p.group_scales != nullptr || p.scale_bytes != nullptr) {
          const auto at = static_cast<uint32_t>(c), width = static_cast<uint32_t>(p.group);
          if (at % width == 0 && c < p.k) store_group_scale(p, row, at / width, group);
        } else if (!codes) {
          for (float& v : block.v) v *= group.value;
        }
      }
    } else {
      quantize_with<Q, codes>(element, scale, block);
    }
    if (codes && p.row_sums != nullptr)
      for (int j = 0; j < kColumns; j++) sum += c + j < p.k ? static_cast<int8_t>(__float_as_uint(block.v[j])) : 0;
    if (c < p.columns) store_block<Out>(p, row, c, block);
  }
  if (codes && p.row_sums != nullptr) store_row_sum(p, row, sum);
}

template <DType Type>
__global__ void __launch_bounds__(kThreads) amax_kernel(const PrepareX p) {
  let_next_launch_start();
  wait_for_previous_launch();
  float most = 0;
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x)
    look_at_row<Type>(p, row, [&](const Block& block, int64_t) { most = fmaxf(most, amax_of(block)); });
  most = largest_in_block<0>(most);
  if (threadIdx.x == 0) const_cast<float*>(p.amax)[blockIdx.x] = most;
}

// ---- launches ----

Quantizer quantizer_of(XRecipe recipe) {
  switch (recipe) {
    case XRecipe::none:
      return Quantizer::none;
    case XRecipe::nvfp4:
      return Quantizer::nvfp4;
    case XRecipe::mx:
      return Quantizer::mx;
    case XRecipe::fp8_group:
    case XRecipe::fp8_token:
    case XRecipe::fp8_tensor:
      return Quantizer::e4m3;
    case XRecipe::int8_group:
    case XRecipe::int8_token:
      return Quantizer::int8;
    case XRecipe::int8_token_asymmetric:
    case XRecipe::int8_tensor:
      return Quantizer::int8_affine;
  }
  return Quantizer::none;
}

using PrepareKernel = void (*)(PrepareX);

template <DType Type, class Out>
PrepareKernel kernel_of(Quantizer quantizer) {
  static constexpr PrepareKernel kernels[] = {
      prepare_kernel<Type, Out, Quantizer::none>, prepare_kernel<Type, Out, Quantizer::nvfp4>,
      prepare_kernel<Type, Out, Quantizer::mx>,   prepare_kernel<Type, Out, Quantizer::e4m3>,
      prepare_kernel<Type, Out, Quantizer::int8>, prepare_kernel<Type, Out, Quantizer::int8_affine>};
  return kernels[static_cast<int>(quantizer)];
}
// What is asked for: codes; bf16; fp16 or fp32 where x is fp16. nullptr: nothing of that.
PrepareKernel kernel_of(const PrepareX& p) {
  const Quantizer quantizer = quantizer_of(p.recipe);
  const bool half = p.dtype == DType::f16;
  if (p.out_dtype == DType::u8)
    return half ? kernel_of<DType::f16, uint8_t>(quantizer) : kernel_of<DType::bf16, uint8_t>(quantizer);
  if (p.out_dtype == DType::f32) return half ? kernel_of<DType::f16, float>(quantizer) : nullptr;
  return half ? kernel_of<DType::f16, uint16_t>(quantizer) : kernel_of<DType::bf16, uint16_t>(quantizer);
}

bool in_blocks_of_16_bytes(const PrepareX& p) {
  return p.gather == nullptr && p.pre_scale == nullptr && p.k % kColumns == 0 && p.stride % kColumns == 0 &&
         reinterpret_cast<uintptr_t>(p.x) % 16 == 0;
}
bool can_start_early() { return limits().major >= 9; }

}  // namespace

bool prepare_x(PrepareX p, void* stream) {
  if (p.rows == 0) return true;
  p.blocks_of_16_bytes = in_blocks_of_16_bytes(p);
  const int64_t shares = (p.columns + kThreads * kColumns - 1) / (kThreads * kColumns);
  int64_t of_row = shares;
  if (by_token(p.recipe)) of_row = std::clamp<int64_t>(limits().multiprocessors * kBlocksAtOnce / p.rows, 1, shares);
  if (p.row_sums != nullptr) of_row = 1;
  const dim3 blocks(static_cast<unsigned>(p.rows), static_cast<unsigned>(of_row));
  const PrepareKernel kernel = kernel_of(p);
  if (kernel == nullptr) return false;
  // Bytes that were cleared before it are no launch that it could overlap.
  const bool early = can_start_early() && p.scale_bytes == nullptr;
  return launch_early(kernel, blocks, kThreads, p, early, static_cast<cudaStream_t>(stream));
}

bool clear_bytes(uint8_t* at, int64_t count, void* stream) {
  return cudaMemsetAsync(at, 0, static_cast<size_t>(count), static_cast<cudaStream_t>(stream)) == cudaSuccess;
}

bool find_amax(PrepareX& p, float* amax, void* stream) {
  p.blocks_of_16_bytes = in_blocks_of_16_bytes(p);
  p.amax = amax;
  p.amax_count = static_cast<int>(p.rows < most_amax ? p.rows : most_amax);
  static_assert(most_amax <= kThreads, "each thread of the quantizer reads one");
  const auto kernel = p.dtype == DType::f16 ? amax_kernel<DType::f16> : amax_kernel<DType::bf16>;
  return launch_early(kernel, dim3(static_cast<unsigned>(p.amax_count)), kThreads, p, can_start_early(),
                      static_cast<cudaStream_t>(stream));
}

}  // namespace gearshift::cuda
