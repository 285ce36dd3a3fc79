// The streaming decode kernel, y[M,N] = x[M,K] * W^T for few tokens: every weight is read once, by the tensor cores'
// side door.
//
// A block owns `slabs` slabs of 16 rows and, in a cluster of two, half of the columns; its warps split the columns in
// chunks of 128, and each runs all slabs of its chunk. A warp streams its own weights through a private ring of units,
// so the main loop has no barrier beyond the warp. The chunk of x (real rows only) arrives in the same copy groups, two
// chunks ahead, and stays in registers for all slabs. At the end the sums of the warps are added in shared memory in
// fixed order, then those of the cluster: no workspace, no atomics, equal bits from call to call. The loop is bound by
// instruction issue, hence: ring slots and slab numbers are known when it is compiled, and the last block overlaps its
// neighbour (both write the same numbers) instead of being clamped. Weights do not depend on the launch before this
// one: the ring is filled before waiting for it, x is read after.
#pragma once

#include <cuda_runtime_api.h>

#include "kernel/cuda/stage/decode_unit.cuh"
#include "kernel/cuda/stage/stream_call.h"
#include "kernel/cuda/stream_tactics.h"

namespace gearshift::cuda {

template <class Unit, int Tactic>
__global__ void __launch_bounds__(stream_tactics[Tactic].warps * 32, stream_tactics[Tactic].occupancy)
    stream_kernel(const __grid_constant__ StreamCall call) {
  constexpr StreamTactic T = stream_tactics[Tactic];
  constexpr int S = T.slabs, W = T.warps, D = T.depth, NT = T.token_tiles, XROW = stream_x_row_bytes;
  static_assert((D % S == 0 || S % D == 0) && D <= 2 * S,
                "the ring and the slabs must meet, and x come two chunks ahead");
  constexpr int U = D >= S ? D / S : 1;  // chunks that the ring spans
  constexpr int XHALF = 8 * NT * XROW;   // bytes of one chunk of x
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
  // No multiprocessor but Hopper's (and a data centre's Blackwell) has this much shared memory.
  if constexpr (stream_shared_bytes(T, Unit::bytes) > (__CUDA_ARCH__ < 890 || __CUDA_ARCH__ == 1000 ? 166912 : 101376))
    return;
  else
#endif
  {
    extern __shared__ __align__(128) uint8_t memory[];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const uint32_t base = shared_address(memory), ring = base + warp * D * Unit::bytes;
    const uint32_t xs = base + stream_ring_bytes(T, Unit::bytes) + warp * 2 * XHALF;
    const uint32_t exchange = base + stream_main_bytes(T, Unit::bytes), records = exchange + stream_sum_bytes(T);
    const int C = call.cluster, rank = blockIdx.x % C;
    const int slab0 = min(static_cast<int>(blockIdx.x / C) * S, call.slabs - S);
    const int units = call.units_along_k;
    const int c0 = static_cast<int>(static_cast<int64_t>(units) * rank / C);
    const int c1 = static_cast<int>(static_cast<int64_t>(units) * (rank + 1) / C);
    const int chunks = c1 - c0 > warp ? (c1 - c0 - warp + W - 1) / W : 0;
    const size_t slab_step = static_cast<size_t>(units) * Unit::bytes;
    constexpr size_t chunk_step = static_cast<size_t>(W) * Unit::bytes;
    const uint8_t* w = call.units + slab0 * slab_step + static_cast<size_t>(c0 + warp) * Unit::bytes + lane * 16;
    const uint32_t ring_lane = ring + lane * 16;
    const bool has_scales = lane < Unit::scale_bytes / 16;
    auto copy_unit = [&](int slot, const uint8_t* from, bool on) {
      const uint32_t to = ring_lane + slot * Unit::bytes;
      if (on) {
        copy_async(to, from);
        copy_async(to + 512, from + 512);
      }
      if (on && has_scales) copy_async(to + 1024, from + 1024);
    };
    // Half a warp takes a row of 128 columns; columns past K are zero.
    const int x_row = lane >> 4, x_column = (c0 + warp) * 128 + (lane & 15) * 8;
    const uint16_t* x = call.x + x_row * call.x_stride + x_column;
    auto copy_x = [&](int i) {
      const uint32_t to = xs + (i & 1) * XHALF + x_row * XROW + (lane & 15) * 16;
      const bool real = x_column + i * W * 128 < call.k;
#pragma unroll
      for (int q = 0; q < 4 * NT; q++) {
        if (x_row + 2 * q >= call.m) continue;
        copy_async_or_zero(to + 2 * q * XROW, real ? x + 2 * q * call.x_stride + i * W * 128 : call.x, real);
      }
    };

    for (int r = threadIdx.x; r < S * 16; r += W * 32)
      copy_async(records + r * 16, call.records + (slab0 * 16 + r) * 4);
#pragma unroll
    for (int g = 0; g < D; g++) {
      copy_unit(g, w + (D >= S ? (g / S) * chunk_step + (g % S) * slab_step : g * slab_step),
                D >= S ? g / S < chunks : chunks > 0);
      copy_async_commit();
    }
    let_next_launch_start();
    wait_for_previous_launch();
    {  // the first two chunks of x through registers, so that they do not queue behind the weights
      uint4 v[2][4 * NT];
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int q = 0; q < 4 * NT; q++) {
          v[i][q] = make_uint4(0, 0, 0, 0);
          if (i < chunks && x_row + 2 * q < call.m && x_column + i * W * 128 < call.k)
            v[i][q] = *reinterpret_cast<const uint4*>(x + 2 * q * call.x_stride + i * W * 128);
        }
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int q = 0; q < 4 * NT; q++)
          if (i < chunks && x_row + 2 * q < call.m)
            store_shared4(xs + i * XHALF + (x_row + 2 * q) * XROW + (lane & 15) * 16, v[i][q]);
      __syncwarp();
    }

    float sum[S][NT][4];
#pragma unroll
    for (int s = 0; s < S; s++)
#pragma unroll
      for (int t = 0; t < NT; t++) sum[s][t][0] = sum[s][t][1] = sum[s][t][2] = sum[s][t][3] = 0.f;
    int ring_chunk = 0;
    for (int i = 0; i < chunks; i++) {
      uint32_t b[NT][16];
      const uint32_t slots = ring + ring_chunk * S * Unit::bytes;
      const bool more = i + U < chunks;
#pragma unroll
      for (int s = 0; s < S; s++) {
        copy_async_wait<D - 1>();
        __syncwarp();
        if (s == 0) {
          const uint32_t at = xs + (i & 1) * XHALF + (lane & 7) * XROW + (lane >> 3) * 16;
#pragma unroll
          for (int t = 0; t < NT; t++)
#pragma unroll
            for (int j = 0; j < 4; j++) load_matrix4(b[t] + 4 * j, at + t * 8 * XROW + j * 64);
        }
        typename Unit::Raw raw;
        Unit::load(raw, slots + (D >= S ? s : s % D) * Unit::bytes, lane);
        __syncwarp();
        // The slot is free again: refill it before computing.
        if (D >= S)
          copy_unit(s + ring_chunk * S, w + U * chunk_step + s * slab_step, more);
        else if (s + D < S)
          copy_unit(s % D, w + (s + D) * slab_step, true);
        else
          copy_unit(s % D, w + chunk_step + (s + D - S) * slab_step, more);
        if (s == 0 && i + 2 < chunks) copy_x(i + 2);
        copy_async_commit();

        typename Unit::Regs regs;
        Unit::expand(regs, raw);
        float part[NT][4];
#pragma unroll
        for (int j = 0; j < 8; j++) {
          uint32_t a[4];
          Unit::step(regs, j, a);
          if constexpr (Unit::groups == 0) {
#pragma unroll
            for (int t = 0; t < NT; t++) multiply_bf16(sum[s][t], a, b[t][2 * j], b[t][2 * j + 1]);
          } else {
            constexpr int steps = 8 / Unit::groups;
            if (j % steps == 0)
#pragma unroll
              for (int t = 0; t < NT; t++) part[t][0] = part[t][1] = part[t][2] = part[t][3] = 0.f;
#pragma unroll
            for (int t = 0; t < NT; t++) multiply_bf16(part[t], a, b[t][2 * j], b[t][2 * j + 1]);
            if (j % steps == steps - 1) {
              const float2 scale = Unit::group_scale(regs, j / steps, call.half_scales);
#pragma unroll
              for (int t = 0; t < NT; t++) {
                sum[s][t][0] = __fmaf_rn(scale.x, part[t][0], sum[s][t][0]);
                sum[s][t][1] = __fmaf_rn(scale.x, part[t][1], sum[s][t][1]);
                sum[s][t][2] = __fmaf_rn(scale.y, part[t][2], sum[s][t][2]);
                sum[s][t][3] = __fmaf_rn(scale.y, part[t][3], sum[s][t][3]);
              }
            }
          }
        }
      }
      w += chunk_step;
      if (U > 1 && ++ring_chunk == U) ring_chunk = 0;
    }

    // ---- sums: the rings are dead once every warp is here ----
    copy_async_wait<0>();
    __syncthreads();
    constexpr int E = S * NT * 128;  // outputs of this block, in fragment order
#pragma unroll
    for (int s = 0; s < S; s++)
#pragma unroll
      for (int t = 0; t < NT; t++) store_shared4(base + ((warp * S * NT + s * NT + t) * 32 + lane) * 16, sum[s][t]);
    if (C > 1)
      cluster_sync();  // which also says that every peer has started
    else
      __syncthreads();
    auto put = [&](int e, float v) {
      const int i = e & 3, l = (e >> 2) & 31, tile = e >> 7, t = tile % NT, s = tile / NT;
      const int token = t * 8 + (l & 3) * 2 + (i & 1);
      const uint4 record = load_shared4(records + (s * 16 + (l >> 2) + (i >> 1) * 8) * 16);
      const int column = static_cast<int>(record.z);
      if (token >= call.m || column < 0) return;
      float factor = __uint_as_float(record.x) * call.factor;
      if (call.token_factor != nullptr) factor *= call.token_factor[token];
      call.y[token * call.y_stride + column] = to_bf16(v * factor + __uint_as_float(record.y));
    };
    const int share = (E + C - 1) / C;
    for (int e = threadIdx.x; e < E; e += W * 32) {
      float v = 0.f;
#pragma unroll
      for (int i = 0; i < W; i++) v += load_shared_float(base + (i * E + e) * 4);
      if (C == 1)
        put(e, v);
      else {
        const int owner = e / share;
        store_in_cluster(exchange + (rank * share + e - owner * share) * 4, owner, v);
      }
    }
    if (C == 1) return;
    cluster_sync();
    for (int e = threadIdx.x; e < share && rank * share + e < E; e += W * 32) {
      float v = 0.f;
      for (int r = 0; r < C; r++) v += load_shared_float(exchange + (r * share + e) * 4);
      put(rank * share + e, v);
    }
  }
}

// ---- launch ----

template <class Unit, bool Rare, int Tactic>
const void* stream_function() {
  if constexpr (Rare && !stream_tactics[Tactic].everywhere)
    return nullptr;
  else
    return reinterpret_cast<const void*>(&stream_kernel<Unit, Tactic>);
}

// Queues one launch of the tactic chosen by the caller. False: the device refuses it.
template <class Unit, bool Rare, int... Tactics>
bool launch_stream_tactic(const StreamCall& call, int tactic, void* stream, bool dependent,
                          std::integer_sequence<int, Tactics...>) {
  static const void* const functions[] = {stream_function<Unit, Rare, Tactics>()...};
  const StreamTactic& t = stream_tactics[tactic];
  const void* function = functions[tactic];
  // A block meant to have a multiprocessor to itself gets it: otherwise the next launch, which may start early, fills
  // the idle ones twice over while others still work.
  const int needed = stream_shared_bytes(t, Unit::bytes),
            bytes = t.occupancy == 1 && needed < call.alone_bytes ? call.alone_bytes : needed;
  if (function == nullptr ||
      cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((call.slabs + t.slabs - 1) / t.slabs * call.cluster);
  config.blockDim = dim3(t.warps * 32);
  config.dynamicSmemBytes = bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = attributes;
  if (call.cluster > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = call.cluster;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  }
  if (dependent) {
    cudaLaunchAttribute& early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  void* arguments[] = {const_cast<StreamCall*>(&call)};
  return cudaLaunchKernelExC(&config, function, arguments) == cudaSuccess;
}
template <class Unit, bool Rare>
bool launch_stream(const StreamCall& call, int tactic, void* stream, bool dependent) {
  return launch_stream_tactic<Unit, Rare>(call, tactic, stream, dependent,
                                          std::make_integer_sequence<int, static_cast<int>(stream_tactics.size())>());
}

}  // namespace gearshift::cuda
