#include "kernel/cuda/stage/panel.h"

#include <cuda_runtime.h>

#include "device/cuda.h"
#include "format/e5m2.h"
#include "format/e8m0.h"
#include "kernel/cuda/stage/decode_rows.cuh"
#include "kernel/cuda/stage/decode_unit.cuh"
#include "kernel/cuda/stage/launch.cuh"

namespace gearshift::cuda {

namespace {

template <class T>
__device__ T as(float v) {
  if constexpr (sizeof(T) == 2)
    return to_bf16(v);
  else
    return v;
}

// ---- code_rows ----

// Eight codes of a row as floats.
struct Eight {
  float v[8];
};
// Codes of a byte: two words of four, exact in bf16 (stage/decode_rows.cuh) but for NaN.
template <class Pairs>
__device__ Eight narrow(const uint8_t* codes, uint8_t nan) {
  const uint2 words = *reinterpret_cast<const uint2*>(codes);
  Eight out;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const uint32_t w = i == 0 ? words.x : words.y, even = Pairs::even(w), odd = Pairs::odd(w);
    out.v[4 * i] = __uint_as_float(even << 16);
    out.v[4 * i + 1] = __uint_as_float(odd << 16);
    out.v[4 * i + 2] = __uint_as_float(even & 0xFFFF0000u);
    out.v[4 * i + 3] = __uint_as_float(odd & 0xFFFF0000u);
  }
  if (nan == 0) return out;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const uint32_t magnitude = (i < 4 ? words.x : words.y) >> (8 * (i % 4)) & 127u;
    if (magnitude >= nan) out.v[i] = NAN;
  }
  return out;
}
template <RowCode Code>
__device__ float one_of(const uint8_t* row, int64_t k) {
  if constexpr (Code == RowCode::e5m2)
    return format::decode_e5m2(row[k]);
  else if constexpr (Code == RowCode::f32)
    return reinterpret_cast<const float*>(row)[k];
  else if constexpr (Code == RowCode::bf16)
    return from_bf16(reinterpret_cast<const uint16_t*>(row)[k]);
  else
    return from_f16(reinterpret_cast<const uint16_t*>(row)[k]);
}
template <RowCode Code>
__device__ Eight eight_of(const uint8_t* row, int64_t k, int64_t end) {
  if constexpr (Code == RowCode::e4m3) {
    return narrow<FloatCode<4, 3, false>>(row + k, 0x7F);
  } else if constexpr (Code == RowCode::e2m1) {
    return narrow<FloatCode<2, 1, false>>(row + k, 0);
  } else if constexpr (Code == RowCode::e2m3) {
    return narrow<FloatCode<2, 3, false>>(row + k, 0);
  } else if constexpr (Code == RowCode::e3m2) {
    return narrow<FloatCode<3, 2, false>>(row + k, 0);
  } else if constexpr (Code == RowCode::integer) {
    return narrow<Int8Code<false>>(row + k, 0);
  } else {
    Eight out{};
#pragma unroll
    for (int i = 0; i < 8; i++)
      if (k + i < end) out.v[i] = one_of<Code>(row, k + i);
    return out;
  }
}

__device__ float scale_of(const CodeRowsPanel& p, uint32_t row, uint32_t group) {
  const uint8_t* scales = p.scales + row * p.scale_row_bytes;
  return p.exponents ? format::decode_e8m0(scales[group]) : reinterpret_cast<const float*>(scales)[group];
}
__device__ float zero_of(const CodeRowsPanel& p, uint32_t row, uint32_t group) {
  return static_cast<float>(p.zeros[row * p.groups + group]);
}

// A thread writes eight columns of a row; rows of the layout are padded to 16 bytes.
template <RowCode Code, class T>
__global__ void __launch_bounds__(256) expand_code_rows_kernel(const CodeRowsPanel p) {
  const auto blocks_of_row = static_cast<uint32_t>(p.columns / 8);
  const uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t row = at / blocks_of_row, k0 = at % blocks_of_row * 8;
  if (row >= p.rows) return;
  Eight values{};
  if (k0 < p.k) values = eight_of<Code>(p.codes + row * p.row_bytes, k0, p.k);
  if (p.scales != nullptr || p.zeros != nullptr) {
    const auto columns = static_cast<uint32_t>(p.group_columns);
    if (p.index == nullptr && columns % 8 == 0) {  // one group for all eight
      const uint32_t group = columns == 0 ? 0 : min(k0 / columns, static_cast<uint32_t>(p.groups) - 1);
      const float zero = p.zeros != nullptr ? zero_of(p, row, group) : 0;
      const float scale = p.scales != nullptr ? scale_of(p, row, group) : 1;
#pragma unroll
      for (float& v : values.v) v = (v - zero) * scale;
    } else {
#pragma unroll
      for (uint32_t i = 0; i < 8; i++) {
        const uint32_t k = min(k0 + i, static_cast<uint32_t>(p.k) - 1);
        const auto group = p.index != nullptr ? static_cast<uint32_t>(p.index[k]) : k / columns;
        if (p.zeros != nullptr) values.v[i] -= zero_of(p, row, group);
        if (p.scales != nullptr) values.v[i] *= scale_of(p, row, group);
      }
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < 8; i++)
    if (k0 + i >= p.k) values.v[i] = 0;
  __align__(16) T out[8];
#pragma unroll
  for (int i = 0; i < 8; i++) out[i] = as<T>(values.v[i]);
  auto* to = reinterpret_cast<uint4*>(static_cast<T*>(p.panel) + row * p.columns + k0);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof out / 16); i++) to[i] = reinterpret_cast<const uint4*>(out)[i];
}

template <RowCode Code>
void launch_code_rows(const CodeRowsPanel& p, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((p.rows * (p.columns / 8) + 255) / 256);
  if (p.wide)
    expand_code_rows_kernel<Code, float><<<blocks, 256, 0, stream>>>(p);
  else
    expand_code_rows_kernel<Code, uint16_t><<<blocks, 256, 0, stream>>>(p);
}

// ---- units ----

constexpr int kWarps = 4;

// A warp decodes a unit and writes 16 rows of 128 columns through shared memory, whole rows at a time.
template <class Unit, bool RowFactor, class T>
__global__ void __launch_bounds__(kWarps * 32) expand_units_kernel(const UnitPanel p) {
  constexpr int ROW = 128 + 16 / sizeof(T);  // elements; staggered so that rows meet other banks
  __shared__ __align__(16) uint8_t unit_memory[kWarps][Unit::bytes];
  __shared__ __align__(16) T tile[kWarps][16 * ROW];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kWarps + warp;
  if (at >= p.slabs * p.units_along_k) return;
  const int64_t slab = at / p.units_along_k, unit = at % p.units_along_k;
  const auto* from = reinterpret_cast<const uint4*>(p.units + at * Unit::bytes);
  for (int i = lane; i < Unit::bytes / 16; i += 32) reinterpret_cast<uint4*>(unit_memory[warp])[i] = from[i];
  __syncwarp();
  typename Unit::Raw raw;
  typename Unit::Regs regs;
  Unit::load(raw, shared_address(unit_memory[warp]), lane);
  Unit::expand(regs, raw);
  const int r = lane >> 2, t = lane & 3;
  float2 factor = make_float2(1, 1);
  if (RowFactor) {
    const uint32_t* record = p.records + (slab * 16 + r) * 4;
    factor = make_float2(__uint_as_float(record[0]), __uint_as_float(record[32]));
  }
#pragma unroll
  for (int j = 0; j < 8; j++) {
    uint32_t a[4];
    Unit::step(regs, j, a);
    float2 scale = factor;
    if (Unit::groups > 0) scale = Unit::group_scale(regs, j * (Unit::groups > 0 ? Unit::groups : 1) / 8, p.half_scales);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float s = i & 1 ? scale.y : scale.x;
      T* to = tile[warp] + (r + (i & 1) * 8) * ROW + j * 16 + (i >> 1) * 8 + 2 * t;
      to[0] = as<T>(__uint_as_float(a[i] << 16) * s);
      to[1] = as<T>(__uint_as_float(a[i] & 0xFFFF0000u) * s);
    }
  }
  __syncwarp();
  constexpr int per_row = 128 * sizeof(T) / 16;
  auto* out = static_cast<T*>(p.panel) + slab * 16 * p.units_along_k * 128 + unit * 128;
  for (int i = lane; i < 16 * per_row; i += 32) {
    const int row = i / per_row, piece = i % per_row;
    *reinterpret_cast<uint4*>(out + row * p.units_along_k * 128 + piece * (16 / sizeof(T))) =
        *reinterpret_cast<const uint4*>(tile[warp] + row * ROW + piece * (16 / sizeof(T)));
  }
}

template <class Unit, bool RowFactor = false>
void launch_units(const UnitPanel& p, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((p.slabs * p.units_along_k + kWarps - 1) / kWarps);
  if (p.wide)
    expand_units_kernel<Unit, RowFactor, float><<<blocks, kWarps * 32, 0, stream>>>(p);
  else
    expand_units_kernel<Unit, RowFactor, uint16_t><<<blocks, kWarps * 32, 0, stream>>>(p);
}

// ---- results ----

// Columns of a thread. Four where sums, results and their rows begin on whole fours; a row of blocks is a row of sums.
template <int Columns>
__global__ void __launch_bounds__(256) finish_kernel(const FinishSums p) {
  let_next_launch_start();
  wait_for_previous_launch();
  const int64_t m = blockIdx.y, r = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * Columns;
  if (r >= p.columns) return;
  float token = p.alpha;
  if (p.token_factor != nullptr) token *= p.token_factor[m];
  __align__(16) float sums[Columns];
  const float* from = p.sums + m * p.sums_stride + r;
  if constexpr (Columns == 4)
    *reinterpret_cast<float4*>(sums) = *reinterpret_cast<const float4*>(from);
  else
    sums[0] = *from;
  __align__(8) uint16_t out[Columns];
#pragma unroll
  for (int i = 0; i < Columns; i++) {
    const float factor = p.row_factor != nullptr ? token * p.row_factor[r + i] : token;
    const float sum = p.integers ? static_cast<float>(__float_as_int(sums[i])) : sums[i];
    float value = sum * factor;
    if (p.bias != nullptr) value += p.bias[(r + i) * p.bias_stride];
    out[i] = p.dtype == DType::f16 ? to_f16(value) : to_bf16(value);
  }
  auto* to = static_cast<uint16_t*>(p.y) + m * p.y_stride + p.first_column + r * p.column_step;
  if constexpr (Columns == 4)
    *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(out);
  else
    *to = out[0];
}

}  // namespace

bool expand_code_rows(const CodeRowsPanel& p, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  switch (p.code) {
    case RowCode::bf16:
      launch_code_rows<RowCode::bf16>(p, queue);
      break;
    case RowCode::f16:
      launch_code_rows<RowCode::f16>(p, queue);
      break;
    case RowCode::f32:
      launch_code_rows<RowCode::f32>(p, queue);
      break;
    case RowCode::e4m3:
      launch_code_rows<RowCode::e4m3>(p, queue);
      break;
    case RowCode::e5m2:
      launch_code_rows<RowCode::e5m2>(p, queue);
      break;
    case RowCode::e2m1:
      launch_code_rows<RowCode::e2m1>(p, queue);
      break;
    case RowCode::e2m3:
      launch_code_rows<RowCode::e2m3>(p, queue);
      break;
    case RowCode::e3m2:
      launch_code_rows<RowCode::e3m2>(p, queue);
      break;
    case RowCode::integer:
      launch_code_rows<RowCode::integer>(p, queue);
      break;
  }
  return cudaGetLastError() == cudaSuccess;
}

bool expand_units(const UnitPanel& p, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  if (p.format == UnitFormat::nvfp4)
    launch_units<Nvfp4Unit<false>>(p, queue);
  else if (p.format == UnitFormat::mxfp4)
    launch_units<Mxfp4Unit<false>, true>(p, queue);
  else if (p.groups == 1 && !p.zeros)
    launch_units<Int4Unit<1, false, false>>(p, queue);
  else if (p.groups == 1)
    launch_units<Int4Unit<1, true, false>>(p, queue);
  else if (p.groups == 2 && !p.zeros)
    launch_units<Int4Unit<2, false, false>>(p, queue);
  else if (p.groups == 2)
    launch_units<Int4Unit<2, true, false>>(p, queue);
  else if (!p.zeros)
    launch_units<Int4Unit<4, false, false>>(p, queue);
  else
    launch_units<Int4Unit<4, true, false>>(p, queue);
  return cudaGetLastError() == cudaSuccess;
}

bool finish_sums(const FinishSums& p, void* stream) {
  if (p.rows * p.columns == 0) return true;
  const auto* first = static_cast<const uint16_t*>(p.y) + p.first_column;
  const bool fours = p.column_step == 1 && p.columns % 4 == 0 && p.sums_stride % 4 == 0 && p.y_stride % 4 == 0 &&
                     reinterpret_cast<uintptr_t>(p.sums) % 16 == 0 && reinterpret_cast<uintptr_t>(first) % 8 == 0;
  const int64_t columns_of_block = 256 * (fours ? 4 : 1);
  const dim3 blocks(static_cast<unsigned>((p.columns + columns_of_block - 1) / columns_of_block),
                    static_cast<unsigned>(p.rows));
  return launch_early(fours ? finish_kernel<4> : finish_kernel<1>, blocks, 256, p, limits().major >= 9,
                      static_cast<cudaStream_t>(stream));
}

}  // namespace gearshift::cuda
