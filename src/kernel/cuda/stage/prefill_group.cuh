// The prefill kernel for experts: tiles of tokens that share one, rows of x sorted by expert, main loop and sums of
// prefill.cuh. Every tile is computed by one block, and blocks take them in turn, those of one expert one after the
// other, so that its weights come from memory once.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "kernel/cuda/stage/group_tiles.cuh"
#include "kernel/cuda/stage/prefill_copies.cuh"
#include "kernel/cuda/stage/prefill_group_call.h"

namespace gearshift::cuda {

// copy_box (stage/hopper.cuh) of matrix number `matrix` of several.
GEARSHIFT_DEVICE void copy_box_of(uint32_t to, const void* map, int column, int row, int matrix, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3,%4}],[%5];" ::
          "r"(to),
      "l"(map), "r"(column), "r"(row), "r"(matrix), "r"(barrier)
      : "memory");
}

// Tactics of the dense kernel that are built for groups: one block a tile, no cluster.
template <class Weights>
constexpr bool prefill_groups(int tactic) {
  const PrefillTactic t = Weights::tactic(tactic);
  return t.everywhere && prefill_cluster(t) == 1;
}

struct PrefillGroupItem {
  GroupTile tile;
  int row_tile = 0;
};
// Tiles without tokens come last: the first one ends a block's work.
class PrefillGroupWork {
 public:
  __device__ __forceinline__ PrefillGroupWork(const PrefillCall& call, const GroupedTiles& group)
      : tiles_(group.tiles), end_(group.count * call.row_tiles), row_tiles_(call.row_tiles), next_(blockIdx.x) {}
  __device__ __forceinline__ bool next(PrefillGroupItem& item) {
    if (next_ >= end_) return false;
    item.tile = load_group_tile(tiles_ + next_ / row_tiles_);
    item.row_tile = next_ % row_tiles_;
    next_ += static_cast<int>(gridDim.x);
    return item.tile.expert >= 0;
  }

 private:
  const GroupTile* tiles_;
  int end_, row_tiles_, next_;
};

// The weights of a stage of one expert.
template <PrefillTactic T, class Weights>
GEARSHIFT_DEVICE void copy_expert_weights(const PrefillRing<T, Weights>& ring, int slot, const TensorMap& map,
                                          const PrefillGroupItem& item, int stage) {
  using Ring = PrefillRing<T, Weights>;
  const uint32_t barrier = ring.full + slot * 8, to = ring.base + slot * Ring::stage_bytes + Ring::x_bytes;
  barrier_arrive_with_bytes(barrier, Ring::x_bytes + Ring::weight_bytes);
#pragma unroll
  for (int u = 0; u < T.units; u++)
    copy_box_of(to + u * Ring::unit_bytes, &map, (stage * T.units + u) * Weights::map_step,
                item.row_tile * (prefill_rows(T) / 16) * Weights::map_rows, item.tile.expert, barrier);
}

template <class Weights, int Tactic>
__global__ void __launch_bounds__(prefill_threads(Weights::tactic(Tactic)), 1)
    prefill_group_kernel(const __grid_constant__ PrefillCall call, const __grid_constant__ GroupedTiles group,
                         const __grid_constant__ TensorMap x_map, const __grid_constant__ TensorMap w_map) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr PrefillTactic T = Weights::tactic(Tactic);
  using Ring = PrefillRing<T, Weights>;
  static_assert(Ring::count >= 2, "copies and products overlap");
  static_assert(!Weights::in_shared, "scales of tokens have no tile boundaries to begin on");
  extern __shared__ uint8_t memory[];
  __shared__ __align__(8) uint64_t barriers[2 * Ring::count];
  const uint32_t first_barrier = shared_address(barriers);
  Ring ring{(shared_address(memory) + 1023) & ~1023u, first_barrier, first_barrier + Ring::count * 8};
  const int warpgroup = threadIdx.x >> 7;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Ring::count; i++) {
      barrier_init(ring.full + i * 8, 1);
      barrier_init(ring.empty + i * 8, T.warpgroups * Ring::arrivals);
    }
    barrier_init_fence();
  }
  __syncthreads();
  const int stages = (call.units + T.units - 1) / T.units;
  if (!group.ready) wait_for_previous_launch();
  PrefillGroupWork work(call, group);
  PrefillGroupItem item;

  if (warpgroup == T.warpgroups) {
    give_up_registers<prefill_copy_registers>();
    if (threadIdx.x == T.warpgroups * 128) {
      PrefillGroupWork ahead = work;
      for (int slots = 0; slots < Ring::count && ahead.next(item);) {
        for (int s = 0; s < stages && slots < Ring::count; s++, slots++)
          copy_expert_weights<T, Weights>(ring, slots, w_map, item, s);
      }
      let_next_launch_start();
      wait_for_previous_launch();
      bool refill = false;
      ring.parity = 1;
      while (work.next(item)) {
        for (int s = 0; s < stages; s++) {
          if (refill) {
            barrier_wait(ring.empty + ring.slot * 8, ring.parity);
            copy_expert_weights<T, Weights>(ring, ring.slot, w_map, item, s);
          }
          copy_tokens<T, Weights>(call, ring, x_map, item.tile.row, s, 0);
          ring.advance();
          refill = refill || ring.slot == 0;
        }
      }
    }
    return;
  }

  take_registers<prefill_product_registers(T)>();
  const int thread = threadIdx.x & 127, warp = thread >> 5, lane = thread & 31;
  wait_for_previous_launch();
  const PrefillPiece whole{0, 0, stages};
  while (work.next(item)) {
    PrefillCall own = call;
    const int64_t words = item.tile.expert * group.expert_bytes / 4;
    own.rows.factors += words;
    own.rows.bias += words;
    own.rows.columns += words;
    own.y += item.tile.row * call.y_stride;
    if (call.token_factor != nullptr) own.token_factor += item.tile.row;
    own.m = item.tile.rows;
    prefetch_rows<T>(own.rows, item.row_tile, warpgroup, warp, lane);
    PrefillSums<T> sums;
    multiply_from_registers<T, Weights>(call, ring, whole, sums, item.row_tile, warpgroup, thread);
    store_sums<T>(own, sums, item.row_tile, 0, warpgroup, warp, lane, 0, T.tokens / 8);
    // Tells the compiler that the warp is one again: otherwise it keeps descriptors of products in every lane.
    __syncwarp();
  }
#endif
}

// ---- launch ----

template <class Weights, int Tactic>
const void* prefill_group_function() {
  if constexpr (!prefill_groups<Weights>(Tactic))
    return nullptr;
  else
    return reinterpret_cast<const void*>(&prefill_group_kernel<Weights, Tactic>);
}

template <class Weights, int... Tactics>
bool launch_prefill_group_tactic(const PrefillCall& call, const GroupedTiles& group, const PrefillLaunch& launch,
                                 std::integer_sequence<int, Tactics...>) {
  static const void* const functions[] = {prefill_group_function<Weights, Tactics>()...};
  const PrefillTactic t = Weights::tactic(launch.tactic);
  const void* function = functions[launch.tactic];
  const int bytes = prefill_shared_bytes(t, prefill_bytes_of<Weights>());
  if (function == nullptr ||
      cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(launch.blocks);
  config.blockDim = dim3(prefill_threads(t));
  config.dynamicSmemBytes = bytes;
  config.stream = static_cast<cudaStream_t>(launch.stream);
  config.attrs = &early;
  config.numAttrs = 1;
  void* arguments[] = {const_cast<PrefillCall*>(&call), const_cast<GroupedTiles*>(&group),
                       const_cast<TensorMap*>(&launch.x), const_cast<TensorMap*>(&launch.weights)};
  return cudaLaunchKernelExC(&config, function, arguments) == cudaSuccess;
}
template <class Weights>
bool launch_prefill_group(const PrefillCall& call, const GroupedTiles& group, const PrefillLaunch& launch) {
  return launch_prefill_group_tactic<Weights>(call, group, launch, std::make_integer_sequence<int, Weights::tactics>());
}

}  // namespace gearshift::cuda
