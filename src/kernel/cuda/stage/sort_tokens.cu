// A warp per expert looks at every entry: twice, to know where its rows begin and then to write them. Nothing is added
// up by atomics, so that equal choices give equal orders.
#include <cuda_runtime.h>

#include "device/cuda.h"
#include "kernel/cuda/stage/launch.cuh"
#include "kernel/cuda/stage/ptx.cuh"
#include "kernel/cuda/stage/sort_tokens.h"

namespace gearshift::cuda {

namespace {

constexpr int kThreads = 1024, kWarps = kThreads / 32;
// Up to so many entries one block sorts and makes the tiles; above, as many blocks as the experts keep busy.
constexpr int kEntriesOfABlock = 2048;

// One warp: where the rows of expert e begin, and those rows. `first_in_block`: what the block itself reads later.
__device__ void sort_for_expert(const SortTokens& s, const int32_t* experts, int e, int32_t* first_in_block) {
  const int lane = threadIdx.x & 31;
  int less = 0;
#pragma unroll 8
  for (int i = lane; i < s.entries; i += 32)
    less += static_cast<uint32_t>(experts[i]) < static_cast<uint32_t>(e) ? 1 : 0;
  for (int step = 16; step > 0; step /= 2) less += __shfl_xor_sync(~0u, less, step);
  int next = less;
#pragma unroll 4
  for (int i0 = 0; i0 < s.entries; i0 += 32) {
    const int i = i0 + lane;
    const bool mine = i < s.entries && experts[i] == e;
    const uint32_t all = __ballot_sync(~0u, mine);
    if (mine) {
      const int row = next + __popc(all & ((1u << lane) - 1u));
      s.token[row] = i / s.top_k;
      s.expert[row] = e;
      s.place[i] = row;
    }
    next += __popc(all);
  }
  if (lane != 0) return;
  s.first[e] = less;
  if (e + 1 == s.expert_count) s.first[e + 1] = next;
  if (first_in_block == nullptr) return;
  first_in_block[e] = less;
  if (e + 1 == s.expert_count) first_in_block[e + 1] = next;
}

// By all threads of one block, which see `first`.
__device__ void make_tiles(const SortTokens& s, const int32_t* first) {
  __shared__ int32_t begins[most_experts + 1], sums[kWarps];
  const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, tokens = s.tile_tokens;
  int before = 0;
  for (int e0 = 0; e0 < s.expert_count; e0 += kThreads) {
    const int e = e0 + thread;
    const int mine = e < s.expert_count ? (first[e + 1] - first[e] + tokens - 1) / tokens : 0;
    int sum = mine;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, sum, step);
      if (lane >= step) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    int all = 0;
    for (int i = 0; i < kWarps; i++) {
      if (i == warp) sum += before + all;
      all += sums[i];
    }
    if (e < s.expert_count) begins[e] = sum - mine;
    before += all;
    __syncthreads();
  }
  if (thread == 0) begins[s.expert_count] = before;
  __syncthreads();
  for (int i = thread; i < s.tile_count; i += kThreads) {
    GroupTile tile;
    if (i < before) {
      int low = 0, high = s.expert_count;  // the last expert whose tiles do not begin behind this one
      while (high - low > 1) {
        const int middle = (low + high) / 2;
        (begins[middle] <= i ? low : high) = middle;
      }
      tile.expert = low;
      tile.row = first[low] + (i - begins[low]) * tokens;
      tile.rows = min(tokens, first[low + 1] - tile.row);
    }
    s.tiles[i] = tile;
  }
}

__device__ void write_homeless(const SortTokens& s, const int32_t* experts) {
  for (int i = threadIdx.x; i < s.entries; i += kThreads) {
    if (static_cast<uint32_t>(experts[i]) >= static_cast<uint32_t>(s.expert_count)) s.place[i] = -1;
  }
}

__global__ void __launch_bounds__(kThreads) sort_in_a_block(const SortTokens s) {
  __shared__ int32_t experts[kEntriesOfABlock], first[most_experts + 1];
  let_next_launch_start();
  wait_for_previous_launch();
  for (int i = threadIdx.x; i < s.entries; i += kThreads) experts[i] = s.experts[i];
  __syncthreads();
  for (int e = threadIdx.x >> 5; e < s.expert_count; e += kWarps) sort_for_expert(s, experts, e, first);
  write_homeless(s, experts);
  __syncthreads();
  make_tiles(s, first);
}

__global__ void __launch_bounds__(kThreads) sort_in_blocks(const SortTokens s) {
  let_next_launch_start();
  wait_for_previous_launch();
  const int e = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x >> 5);
  if (e < s.expert_count) sort_for_expert(s, s.experts, e, nullptr);
  if (blockIdx.x == 0) write_homeless(s, s.experts);
}
__global__ void __launch_bounds__(kThreads) make_tiles_alone(const SortTokens s) {
  let_next_launch_start();
  wait_for_previous_launch();
  make_tiles(s, s.first);
}

}  // namespace

bool sort_tokens(const SortTokens& call, void* stream) {
  const bool early = limits().major >= 9;
  const auto queue = static_cast<cudaStream_t>(stream);
  if (call.entries <= kEntriesOfABlock) return launch_early(sort_in_a_block, dim3(1), kThreads, call, early, queue);
  const auto blocks = static_cast<unsigned>((call.expert_count + kWarps - 1) / kWarps);
  return launch_early(sort_in_blocks, dim3(blocks), kThreads, call, early, queue) &&
         launch_early(make_tiles_alone, dim3(1), kThreads, call, early, queue);
}

}  // namespace gearshift::cuda
