// What happens to the sums of a tile after the main loop: joined with those of other blocks, multiplied, stored.
#pragma once

#include "kernel/cuda/prefill_tactics.h"
#include "kernel/cuda/stage/hopper.cuh"
#include "kernel/cuda/stage/prefill_work.h"

namespace gearshift::cuda {

// Sums of a thread: [fragment of 64 rows][tokens / 2], in the order of wgmma.cuh.
template <PrefillTactic T>
struct PrefillSums {
  static constexpr int count = T.fragments * T.tokens / 2;
  float v[T.fragments][T.tokens / 2];
};

// Where a warpgroup's sums lie in `partials`: four a thread side by side.
template <PrefillTactic T>
GEARSHIFT_DEVICE float* partial_of(const PrefillCall& call, int block, int warpgroup, int thread) {
  return call.partials + (static_cast<size_t>(block) * T.warpgroups + warpgroup) * PrefillSums<T>::count * 128 +
         thread * 4;
}

// Leaves the sums of an unfinished tile for a later block.
template <PrefillTactic T>
GEARSHIFT_DEVICE void publish_sums(const PrefillCall& call, const PrefillSums<T>& sums, int warpgroup, int thread) {
  const float* v = &sums.v[0][0];
  float* out = partial_of<T>(call, blockIdx.x, warpgroup, thread);
#pragma unroll
  for (int i = 0; i < PrefillSums<T>::count; i += 4)
    __stcg(reinterpret_cast<float4*>(out + i * 128), make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]));
  warpgroup_barrier(warpgroup + 1);
  if (thread == 0) publish(call.flags + blockIdx.x * 4 + warpgroup, call.ticket);
}

// Adds what the blocks before this one computed of the tile. Flags are lowered again.
template <PrefillTactic T>
GEARSHIFT_DEVICE void add_published(const PrefillCall& call, PrefillSums<T>& sums, int tile, int stages, int warpgroup,
                                    int thread) {
  float* v = &sums.v[0][0];
  const int workers = gridDim.x / T.multicast, worker = blockIdx.x / T.multicast;
  const int line = (call.row_tiles * call.token_tiles - call.whole_tiles) * stages;
  const int begin = (tile - call.whole_tiles) * stages;
  int first = worker;
  while (first > 0 && part_begin(line, workers, first) > begin) --first;
  for (int other = first + thread; other < worker; other += 128)
    wait_for(call.flags + (other * T.multicast + blockIdx.x % T.multicast) * 4 + warpgroup, call.ticket);
  warpgroup_barrier(warpgroup + 1);
  for (int other = first; other < worker; ++other) {
    const int block = other * T.multicast + blockIdx.x % T.multicast;
    const float* in = partial_of<T>(call, block, warpgroup, thread);
#pragma unroll
    for (int i = 0; i < PrefillSums<T>::count; i += 4) {
      const float4 part = __ldcg(reinterpret_cast<const float4*>(in + i * 128));
      v[i] += part.x;
      v[i + 1] += part.y;
      v[i + 2] += part.z;
      v[i + 3] += part.w;
    }
    if (thread == 0) call.flags[block * 4 + warpgroup] = 0;
  }
}

// Two blocks hold sums of the same tile over half of the columns each: every one sends the other's half of the tokens
// and finishes its own. `exchange`: prefill_exchange_bytes of each block.
template <PrefillTactic T>
GEARSHIFT_DEVICE void exchange_sums(PrefillSums<T>& sums, uint32_t exchange, int rank, int warpgroup, int thread) {
  constexpr int half = T.tokens / 4;
  const uint32_t own = exchange + (warpgroup * T.fragments * half * 128 + thread * 4) * 4;
  const uint32_t theirs = in_block(own, rank ^ 1);
#pragma unroll
  for (int m = 0; m < T.fragments; m++)
#pragma unroll
    for (int i = 0; i < half; i += 4) {
      const float *first = sums.v[m] + i, *second = first + half;
      store_there(theirs + (m * half + i) * 128 * 4, rank != 0
                                                         ? make_float4(first[0], first[1], first[2], first[3])
                                                         : make_float4(second[0], second[1], second[2], second[3]));
    }
  cluster_sync();
#pragma unroll
  for (int m = 0; m < T.fragments; m++)
#pragma unroll
    for (int i = 0; i < half; i += 4) {
      const uint4 word = load_shared4(own + (m * half + i) * 128 * 4);
      const float part[4] = {__uint_as_float(word.x), __uint_as_float(word.y), __uint_as_float(word.z),
                             __uint_as_float(word.w)};
#pragma unroll
      for (int q = 0; q < 4; q++) {
        if (rank != 0)
          sums.v[m][half + i + q] += part[q];
        else
          sums.v[m][i + q] += part[q];
      }
    }
}

// First of the 16 rows of a warp's fragment.
template <PrefillTactic T>
GEARSHIFT_DEVICE int fragment_row(int row_tile, int warpgroup, int m, int warp) {
  return row_tile * prefill_rows(T) + ((warpgroup * T.fragments + m) * 4 + warp) * 16;
}

// What store_sums will read of rows, on its way before the main loop.
template <PrefillTactic T>
GEARSHIFT_DEVICE void prefetch_rows(const PrefillRows& rows, int row_tile, int warpgroup, int warp, int lane) {
#pragma unroll
  for (int m = 0; m < T.fragments; m++) {
    const int row = fragment_row<T>(row_tile, warpgroup, m, warp) + (lane & 15);
    if (row >= rows.count) continue;
    asm volatile("prefetch.global.L1 [%0];" ::"l"(rows.factors + static_cast<int64_t>(row) * rows.step));
    asm volatile("prefetch.global.L1 [%0];" ::"l"(rows.columns + static_cast<int64_t>(row) * rows.step));
  }
}

// Output columns of the four rows whose results a lane stores, after the transpose, of every token of its.
struct StoredColumns {
  int column[4];  // negative: none
  bool pairs;     // for the whole warp: neighbours, on 4 bytes
};
GEARSHIFT_DEVICE StoredColumns stored_columns(const PrefillCall& call, int first_row, int lane) {
  StoredColumns stored;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int row = first_row + (lane & 3) * 2 + i % 2 + i / 2 * 8;
    stored.column[i] = row < call.rows.count ? call.rows.columns[static_cast<int64_t>(row) * call.rows.step] : -1;
  }
  const bool even = call.y_stride % 2 == 0 && reinterpret_cast<uintptr_t>(call.y) % 4 == 0;
  const bool pairs = even && stored.column[0] >= 0 && stored.column[0] % 2 == 0 &&
                     stored.column[1] == stored.column[0] + 1 && stored.column[2] >= 0 && stored.column[2] % 2 == 0 &&
                     stored.column[3] == stored.column[2] + 1;
  stored.pairs = __all_sync(0xFFFFFFFFu, pairs);
  return stored;
}

// Results of the tokens 8 i, i in [begin, end), to y. A lane's sums belong to two rows; after a transpose of 8 x 8 it
// has two neighbouring rows of one token.
template <PrefillTactic T>
GEARSHIFT_DEVICE void store_sums(const PrefillCall& call, const PrefillSums<T>& sums, int row_tile, int token_tile,
                                 int warpgroup, int warp, int lane, int begin, int end) {
#pragma unroll
  for (int m = 0; m < T.fragments; m++) {
    const int first_row = fragment_row<T>(row_tile, warpgroup, m, warp);
    float factor[2], bias[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int row = first_row + (lane >> 2) + i * 8;
      const int64_t at = static_cast<int64_t>(row) * call.rows.step;
      const bool real = row < call.rows.count;
      factor[i] = real ? call.rows.factors[at] * call.factor : 0.f;
      bias[i] = real && call.rows.bias != nullptr ? call.rows.bias[at] : 0.f;
    }
    const StoredColumns to = stored_columns(call, first_row, lane);
#pragma unroll
    for (int i = 0; i < T.tokens / 8; i++) {
      if (i < begin || i >= end) continue;
      const int token = token_tile * T.tokens + i * 8;
      float token0 = 1, token1 = 1;
      if (call.token_factor != nullptr) {
        token0 = call.token_factor[min(token + (lane & 3) * 2, call.m - 1)];
        token1 = call.token_factor[min(token + (lane & 3) * 2 + 1, call.m - 1)];
      }
      const float* s = sums.v[m] + i * 4;
      const uint32_t low = transpose8(
          pair_16bit(call.half_out, s[0] * (factor[0] * token0) + bias[0], s[1] * (factor[0] * token1) + bias[0]));
      const uint32_t high = transpose8(
          pair_16bit(call.half_out, s[2] * (factor[1] * token0) + bias[1], s[3] * (factor[1] * token1) + bias[1]));
      const int own = token + (lane >> 2);
      const bool real = own < call.m;
      uint16_t* y = call.y + own * call.y_stride;
      if (to.pairs) {
        if (real) *reinterpret_cast<uint32_t*>(y + to.column[0]) = low;
        if (real) *reinterpret_cast<uint32_t*>(y + to.column[2]) = high;
      } else {
        if (real && to.column[0] >= 0) y[to.column[0]] = static_cast<uint16_t>(low);
        if (real && to.column[1] >= 0) y[to.column[1]] = static_cast<uint16_t>(low >> 16);
        if (real && to.column[2] >= 0) y[to.column[2]] = static_cast<uint16_t>(high);
        if (real && to.column[3] >= 0) y[to.column[3]] = static_cast<uint16_t>(high >> 16);
      }
    }
  }
}

}  // namespace gearshift::cuda
