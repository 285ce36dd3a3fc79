// The prefill kernel, y[M,N] = x[M,K] * W^T for many tokens: Hopper's warpgroup products, with weights as the operand
// in registers.
//
// A tile is `rows` rows of W by `tokens` tokens. One thread copies stages of K by tensor map, tokens and packed weights
// alike, as fast as they are consumed; the warpgroups that multiply decode a batch of fragments while the products of
// the batch before run. Weights do not depend on the launch before this one: the stages are filled with them before
// waiting for it, tokens come after. Which tiles a block works on, and how blocks share one, says prefill_work.h;
// sums are always added in the same order, so bits do not change from call to call.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "kernel/cuda/stage/prefill_copies.cuh"
#include "kernel/cuda/stage/prefill_e4m3.cuh"

namespace gearshift::cuda {

template <class Weights, int Tactic>
__global__ void __launch_bounds__(prefill_threads(Weights::tactic(Tactic)), 1)
    prefill_kernel(const __grid_constant__ PrefillCall call, const __grid_constant__ TensorMap x_map,
                   const __grid_constant__ TensorMap w_map) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr PrefillTactic T = Weights::tactic(Tactic);
  using Ring = PrefillRing<T, Weights>;
  constexpr int multicast = T.multicast, cluster = prefill_cluster(T);
  static_assert(Ring::count >= 2, "copies and products overlap");
  extern __shared__ uint8_t memory[];
  __shared__ __align__(8) uint64_t barriers[2 * Ring::count];
  const uint32_t first_barrier = shared_address(barriers);
  Ring ring{(shared_address(memory) + 1023) & ~1023u, first_barrier, first_barrier + Ring::count * 8};
  const int warpgroup = threadIdx.x >> 7, rank = cluster > 1 ? static_cast<int>(cluster_rank()) : 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Ring::count; i++) {
      barrier_init(ring.full + i * 8, 1);
      barrier_init(ring.empty + i * 8, T.warpgroups * Ring::arrivals * multicast);
    }
    barrier_init_fence();
  }
  if (threadIdx.x == T.warpgroups * 128) {
    prefetch_map(&w_map);
    prefetch_map(&x_map);
  }
  if (cluster > 1)
    cluster_sync();
  else
    __syncthreads();
  const int stages = (call.units + T.units - 1) / T.units;
  PrefillWork work(call, stages, gridDim.x / cluster, blockIdx.x / cluster, T.split, rank);
  PrefillPiece piece;
  // Row tiles of a cluster stand side by side.
  auto row_tile_of = [&](const PrefillTile& tile) { return multicast > 1 ? tile.row * 2 + rank : tile.row; };

  if (warpgroup == T.warpgroups) {
    give_up_registers<prefill_copy_registers>();
    if (threadIdx.x == T.warpgroups * 128) {
      PrefillWork ahead = work;
      for (int slots = 0; slots < Ring::count && ahead.next(piece);) {
        const int row_tile = row_tile_of(tile_of(call, piece.tile));
        for (int s = piece.first; s < piece.last && slots < Ring::count; s++, slots++)
          copy_weights<T, Weights>(ring, slots, w_map, row_tile, s);
      }
      let_next_launch_start();
      wait_for_previous_launch();
      bool refill = false;
      ring.parity = 1;
      while (work.next(piece)) {
        const PrefillTile tile = tile_of(call, piece.tile);
        const int row_tile = row_tile_of(tile);
        for (int s = piece.first; s < piece.last; s++) {
          if (refill) {
            barrier_wait(ring.empty + ring.slot * 8, ring.parity);
            copy_weights<T, Weights>(ring, ring.slot, w_map, row_tile, s);
          }
          copy_tokens<T, Weights>(call, ring, x_map, tile.token * T.tokens, s, rank);
          ring.advance();
          refill = refill || ring.slot == 0;
        }
      }
    }
    __syncwarp();
    if (cluster > 1) cluster_sync();
    return;
  }

  take_registers<prefill_product_registers(T)>();
  const int thread = threadIdx.x & 127, warp = thread >> 5, lane = thread & 31;
  bool in_passes = false;
  if constexpr (Weights::passes) in_passes = *call.passes != 0;
  wait_for_previous_launch();
  while (work.next(piece)) {
    const PrefillTile tile = tile_of(call, piece.tile);
    const int row_tile = row_tile_of(tile);
    prefetch_rows<T>(call.rows, row_tile, warpgroup, warp, lane);
    PrefillSums<T> sums;
    if constexpr (Weights::scaled)
      multiply_scaled<T, Weights>(call, ring, piece, sums, row_tile, warpgroup, thread);
    else if constexpr (Weights::in_shared)
      multiply_from_shared<T, Weights>(ring, piece, sums, warpgroup, thread);
    else if constexpr (Weights::promoted == 0)
      multiply_from_registers<T, Weights>(call, ring, piece, sums, row_tile, warpgroup, thread);
    else if (!in_passes)
      multiply_promoted<T, Weights>(call, ring, piece, sums, warpgroup, thread);
    else if constexpr (Weights::passes)
      multiply_in_passes<T, Weights>(ring, piece, sums, warpgroup, thread);

    if constexpr (T.split > 1) {
      exchange_sums<T>(sums, ring.base + Ring::count * Ring::stage_bytes, rank, warpgroup, thread);
      constexpr int half = T.tokens / 16;
      store_sums<T>(call, sums, row_tile, tile.token, warpgroup, warp, lane, rank * half, (rank + 1) * half);
    } else if (piece.last < stages) {
      publish_sums<T>(call, sums, warpgroup, thread);
    } else {
      if (piece.first > 0) add_published<T>(call, sums, piece.tile, stages, warpgroup, thread);
      store_sums<T>(call, sums, row_tile, tile.token, warpgroup, warp, lane, 0, T.tokens / 8);
    }
    // Tells the compiler that the warp is one again: otherwise it keeps descriptors of products in every lane.
    __syncwarp();
  }
  // The other block may still send to this one.
  if (multicast > 1) cluster_sync();
#endif
}

// ---- launch ----

// Sums that move on from the tensor core are there twice.
template <class Weights, bool Rare, int Tactic>
const void* prefill_function() {
  constexpr PrefillTactic t = Weights::tactic(Tactic);
  constexpr int sums = t.fragments * t.tokens / 2;
  if constexpr ((Rare && !t.everywhere) || (Weights::promoted > 0 && sums * 2 > 192))
    return nullptr;
  else
    return reinterpret_cast<const void*>(&prefill_kernel<Weights, Tactic>);
}

template <class Weights, bool Rare, int... Tactics>
bool launch_prefill_tactic(const PrefillCall& call, const PrefillLaunch& launch,
                           std::integer_sequence<int, Tactics...>) {
  static const void* const functions[] = {prefill_function<Weights, Rare, Tactics>()...};
  const PrefillTactic t = Weights::tactic(launch.tactic);
  const void* function = functions[launch.tactic];
  const int bytes = prefill_shared_bytes(t, prefill_bytes_of<Weights>());
  if (function == nullptr ||
      cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(launch.blocks);
  config.blockDim = dim3(prefill_threads(t));
  config.dynamicSmemBytes = bytes;
  config.stream = static_cast<cudaStream_t>(launch.stream);
  config.attrs = attributes;
  cudaLaunchAttribute& early = attributes[config.numAttrs++];
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  if (prefill_cluster(t) > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = prefill_cluster(t);
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  }
  void* arguments[] = {const_cast<PrefillCall*>(&call), const_cast<TensorMap*>(&launch.x),
                       const_cast<TensorMap*>(&launch.weights)};
  return cudaLaunchKernelExC(&config, function, arguments) == cudaSuccess;
}
// Rare: only tactics that are `everywhere`.
template <class Weights, bool Rare>
bool launch_prefill(const PrefillCall& call, const PrefillLaunch& launch) {
  PrefillCall finished = call;
  finished.factor *= Weights::left;
  return launch_prefill_tactic<Weights, Rare>(finished, launch, std::make_integer_sequence<int, Weights::tactics>());
}

}  // namespace gearshift::cuda
