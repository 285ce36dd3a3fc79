#include <cuda_runtime.h>

#include "format/e2m1.h"
#include "format/e2m3.h"
#include "format/e3m2.h"
#include "format/e4m3.h"
#include "format/e5m2.h"
#include "format/e8m0.h"
#include "kernel/cuda/stage/decode_unit.cuh"
#include "kernel/cuda/stage/panel.h"

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

template <RowCode Code>
__device__ float value_of(const uint8_t* row, int64_t k) {
  if constexpr (Code == RowCode::f32) return reinterpret_cast<const float*>(row)[k];
  if constexpr (Code == RowCode::bf16) return from_bf16(reinterpret_cast<const uint16_t*>(row)[k]);
  if constexpr (Code == RowCode::f16) return from_f16(reinterpret_cast<const uint16_t*>(row)[k]);
  if constexpr (Code == RowCode::e4m3) return format::decode_e4m3(row[k]);
  if constexpr (Code == RowCode::e5m2) return format::decode_e5m2(row[k]);
  if constexpr (Code == RowCode::e2m1) return format::decode_e2m1(row[k]);
  if constexpr (Code == RowCode::e2m3) return format::decode_e2m3(row[k]);
  if constexpr (Code == RowCode::e3m2) return format::decode_e3m2(row[k]);
  return static_cast<float>(reinterpret_cast<const int8_t*>(row)[k]);
}

// A thread writes eight columns of a row.
template <RowCode Code, class T>
__global__ void __launch_bounds__(256) expand_code_rows_kernel(const CodeRowsPanel p) {
  const int64_t blocks_of_row = p.columns / 8;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t row = at / blocks_of_row, k0 = at % blocks_of_row * 8;
  if (row >= p.rows) return;
  const uint8_t* codes = p.codes + row * p.row_bytes;
  __align__(16) T out[8];
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int64_t k = k0 + i;
    float value = 0;
    if (k < p.k) {
      const int64_t group = p.index != nullptr ? p.index[k] : p.group_columns > 0 ? k / p.group_columns : 0;
      value = value_of<Code>(codes, k);
      if (p.zeros != nullptr) value -= static_cast<float>(p.zeros[row * p.groups + group]);
      if (p.scales != nullptr) {
        const uint8_t* scales = p.scales + row * p.scale_row_bytes;
        value *= p.exponents ? format::decode_e8m0(scales[group]) : reinterpret_cast<const float*>(scales)[group];
      }
    }
    out[i] = as<T>(value);
  }
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

__global__ void __launch_bounds__(256) finish_kernel(const FinishSums p) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t m = at / p.columns, r = at % p.columns;
  if (m >= p.rows) return;
  float factor = p.alpha;
  if (p.token_factor != nullptr) factor *= p.token_factor[m];
  if (p.row_factor != nullptr) factor *= p.row_factor[r];
  const int64_t at_sum = m * p.sums_stride + r;
  const float sum = p.integers ? static_cast<float>(reinterpret_cast<const int32_t*>(p.sums)[at_sum]) : p.sums[at_sum];
  float value = sum * factor;
  if (p.bias != nullptr) value += p.bias[r * p.bias_stride];
  const int64_t to = m * p.y_stride + p.first_column + r * p.column_step;
  if (p.dtype == DType::f32)
    static_cast<float*>(p.y)[to] = value;
  else
    static_cast<uint16_t*>(p.y)[to] = p.dtype == DType::f16 ? to_f16(value) : to_bf16(value);
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
  const auto blocks = static_cast<unsigned>((p.rows * p.columns + 255) / 256);
  finish_kernel<<<blocks, 256, 0, static_cast<cudaStream_t>(stream)>>>(p);
  return cudaGetLastError() == cudaSuccess;
}

}  // namespace gearshift::cuda
