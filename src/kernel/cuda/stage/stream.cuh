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

#include <type_traits>

#include "kernel/cuda/stage/decode_rows.cuh"
#include "kernel/cuda/stage/decode_unit.cuh"
#include "kernel/cuda/stage/group_tiles.cuh"
#include "kernel/cuda/stage/row_function.cuh"
#include "kernel/cuda/stage/stream_call.h"
#include "kernel/cuda/stream_tactics.h"

namespace gearshift::cuda {

template <class Unit, bool Grouped>
constexpr const StreamTactic& stream_tactic(int index) {
  if constexpr (Grouped)
    return Unit::row_major ? stream_row_group_tactics[index] : stream_group_tactics[index];
  else
    return Unit::row_major ? stream_row_tactics[index] : stream_tactics[index];
}

// ---- where weights come from: a warp's own units, copied by all its lanes ----

// Where slab s of a block begins behind its first one, in elements of `step` a slab: side by side or, where gates and
// up are paired, slabs of both in turn.
template <bool Grouped>
struct SlabSteps {
  size_t step, of_pair, of_odd;
  SlabSteps() = default;
  __device__ __forceinline__ SlabSteps(const StreamCall& call, size_t slab_step) : step(slab_step) {
    if constexpr (Grouped) {
      const bool paired = call.function.pairs == StreamFunction::Pairs::slabs;
      of_pair = paired ? step : 2 * step;
      of_odd = paired ? call.rows / 32 * step : step;
    }
  }
  __device__ __forceinline__ size_t at(int s) const {
    return Grouped ? (s >> 1) * of_pair + (s & 1) * of_odd : s * step;
  }
};

// Units that lie side by side along K, slab after slab (kernel/layout/rows16.h).
template <class Unit, int Warps, bool Grouped>
struct UnitSource {
  static constexpr size_t chunk_step = static_cast<size_t>(Warps) * Unit::bytes;
  const uint8_t* w;
  SlabSteps<Grouped> slabs;
  bool has_scales;
  int lane;

  __device__ __forceinline__ UnitSource(const StreamCall& call, int row0, int unit, int lane) : lane(lane) {
    slabs = {call, static_cast<size_t>(call.units_along_k) * Unit::bytes};
    w = call.units + row0 / 16 * slabs.step + static_cast<size_t>(unit) * Unit::bytes + lane * 16;
    has_scales = lane < Unit::scale_bytes / 16;
  }
  // The unit of slab s, `ahead` chunks from here.
  __device__ __forceinline__ void copy(uint32_t slot, int ahead, int s, bool on) const {
    if (!on) return;
    const uint8_t* from = w + ahead * chunk_step + slabs.at(s);
    const uint32_t to = slot + lane * 16;
    copy_async(to, from);
    copy_async(to + 512, from + 512);
    if (has_scales) copy_async(to + 1024, from + 1024);
  }
  __device__ __forceinline__ void advance() { w += chunk_step; }
};

// Tiles cut from row-major codes (stage/decode_rows.cuh); zeros where a row has ended.
template <class Unit, int Warps, bool Grouped>
struct TileSource {
  const uint8_t *w, *scales, *none;
  uint32_t row_offset[4];
  SlabSteps<Grouped> slabs, scale_slabs;
  int left;  // bytes of the row from this lane's first on
  uint32_t to;
  bool has_scales;

  __device__ __forceinline__ TileSource(const StreamCall& call, int row0, int unit, int lane) {
    const int row = lane >> 3, piece = lane & 7, last = call.rows - 1 - row0;
    none = call.units;
    w = call.units + static_cast<size_t>(row0) * call.row_bytes + unit * 128 + piece * 16;
#pragma unroll
    for (int i = 0; i < 4; i++) row_offset[i] = static_cast<uint32_t>(min(row + 4 * i, last) * call.row_bytes);
    slabs = {call, static_cast<size_t>(16) * call.row_bytes};
    left = static_cast<int>(call.row_bytes) - unit * 128 - piece * 16;
    to = row * 128 + (piece ^ row_swizzle(row)) * 16;
    has_scales = Unit::groups > 0 && lane < 16;
    if constexpr (Unit::groups > 0) {
      const int scale_row = row0 + min(lane & 15, last) * call.scale_row_step;
      scales = call.scales + static_cast<size_t>(scale_row) * call.scale_row_bytes + unit * 4;
      scale_slabs = {call, static_cast<size_t>(16) * call.scale_row_bytes};
      if (has_scales) scale_to = row_tile_bytes + lane * 4;
    }
  }
  uint32_t scale_to = 0;
  __device__ __forceinline__ void copy(uint32_t slot, int ahead, int s, bool on) const {
    if (!on) return;
    const uint8_t* from = w + ahead * Warps * 128 + slabs.at(s);
    const bool real = left > ahead * Warps * 128;
    if (!real) from = none;
#pragma unroll
    for (int i = 0; i < 4; i++) copy_async_or_zero(slot + to + i * 512, real ? from + row_offset[i] : none, real);
    if constexpr (Unit::groups > 0)
      if (has_scales) copy_async_word(slot + scale_to, scales + ahead * Warps * 4 + scale_slabs.at(s));
  }
  __device__ __forceinline__ void advance() {
    w += Warps * 128;
    left -= Warps * 128;
    if constexpr (Unit::groups > 0) scales += Warps * 4;
  }
};

// ---- x ----

// Bytes from one token's row of a chunk to the next: ldmatrix wants rows staggered; rows of tiles are swizzled instead.
template <class Unit>
constexpr int stream_x_row() {
  return Unit::row_major ? 256 : stream_x_row_bytes;
}
// Where piece c (16 bytes) of a token's row lies in it.
template <class Unit>
__device__ __forceinline__ int stream_x_piece(int row, int c) {
  return (Unit::row_major ? c ^ ((row & 1) << 2) : c) * 16;
}
// B fragments of a chunk, two registers a step, columns in the order of the weights.
template <class Unit>
__device__ __forceinline__ void load_x(uint32_t* b, uint32_t rows, int lane) {
#pragma unroll
  for (int j = 0; j < 4; j++) {
    if constexpr (Unit::row_major) {
      const int token = lane >> 2, t = lane & 3;
      const uint4 v = load_shared4(rows + token * stream_x_row<Unit>() + stream_x_piece<Unit>(token, 4 * j + t));
      b[4 * j] = __byte_perm(v.x, v.y, 0x5410);
      b[4 * j + 1] = __byte_perm(v.x, v.y, 0x7632);
      b[4 * j + 2] = __byte_perm(v.z, v.w, 0x5410);
      b[4 * j + 3] = __byte_perm(v.z, v.w, 0x7632);
    } else {
      load_matrix4(b + 4 * j, rows + (lane & 7) * stream_x_row<Unit>() + (lane >> 3) * 16 + j * 64);
    }
  }
}

template <class Unit>
__device__ __forceinline__ void multiply_16bit(float* c, const uint32_t* a, uint32_t b0, uint32_t b1) {
  if constexpr (Unit::half)
    multiply_f16(c, a, b0, b1);
  else
    multiply_bf16(c, a, b0, b1);
}

// The row of x that is row `row` of the call's tile.
GEARSHIFT_DEVICE int x_row_of(const StreamCall& call, int row) {
  return call.group.x_rows == nullptr ? row : __ldcg(call.group.x_rows + row);
}

// Factor, bias and output column of `rows` rows from row0 on, 16 bytes each; column -1: none.
template <class Unit>
__device__ __forceinline__ void copy_records(const StreamCall& call, uint32_t records, int row0, int rows,
                                             bool paired) {
  for (int r = threadIdx.x; r < rows; r += blockDim.x) {
    const uint32_t to = records + r * 16;
    const int row = row0 + (paired ? (r >> 5) * 16 + (r & 15) + (r >> 4 & 1) * (call.rows / 2) : r);
    if constexpr (!Unit::row_major) {
      copy_async(to, call.records + row * 4);
    } else if (row < call.rows) {
      copy_async_word(to, call.factors + row);
      if (call.bias != nullptr)
        copy_async_word(to + 4, call.bias + row);
      else
        store_shared1(to + 4, 0);
      copy_async_word(to + 8, call.columns + row);
    } else {
      store_shared1(to + 8, 0xFFFFFFFFu);
    }
  }
}

// The `block`-th block of rows of one matrix.
template <class Unit, int Tactic, bool Grouped>
__device__ __forceinline__ void stream_block(const StreamCall& call, int block) {
  constexpr StreamTactic T = stream_tactic<Unit, Grouped>(Tactic);
  constexpr int S = T.slabs, W = T.warps, D = T.depth, NT = T.token_tiles, XROW = stream_x_row<Unit>();
  static_assert((D % S == 0 || S % D == 0) && D <= 2 * S,
                "the ring and the slabs must meet, and x come two chunks ahead");
  constexpr int U = D >= S ? D / S : 1;  // chunks that the ring spans
  constexpr int XHALF = 8 * NT * XROW;   // bytes of one chunk of x
  extern __shared__ __align__(128) uint8_t memory[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const uint32_t base = shared_address(memory), ring = base + warp * D * Unit::bytes;
  const uint32_t xs = base + stream_ring_bytes(T, Unit::bytes) + warp * 2 * 8 * NT * stream_x_row_bytes;
  const uint32_t x_scales = xs + 2 * XHALF;  // row_major: of two chunks, 8 NT tokens each
  const uint32_t exchange = base + stream_main_bytes(T, Unit::bytes), records = exchange + stream_sum_bytes(T);
  const int C = Grouped ? 1 : call.cluster, rank = block % C;
  // Pairs of slabs, gate and up, count as one.
  const bool paired = Grouped && call.function.pairs == StreamFunction::Pairs::slabs;
  const int own_rows = paired ? S * 8 : S * 16, all_rows = paired ? call.rows / 2 : call.rows;
  const int row0 = max(0, min(block / C * own_rows, all_rows - own_rows));
  const int units = call.units_along_k;
  const int c0 = static_cast<int>(static_cast<int64_t>(units) * rank / C);
  const int c1 = static_cast<int>(static_cast<int64_t>(units) * (rank + 1) / C);
  const int chunks = c1 - c0 > warp ? (c1 - c0 - warp + W - 1) / W : 0;
  using Source = std::conditional_t<Unit::row_major, TileSource<Unit, W, Grouped>, UnitSource<Unit, W, Grouped>>;
  Source source(call, row0, c0 + warp, lane);
  // Half a warp takes a row of 128 columns; columns past K are zero.
  const int x_row = lane >> 4, x_column = (c0 + warp) * 128 + (lane & 15) * 8;
  const int x_to = x_row * XROW + stream_x_piece<Unit>(x_row, lane & 15);
  const uint16_t* x = call.x + (Grouped ? 0 : x_row * call.x_stride) + x_column;
  // Of this lane's q-th token; of a group: where x_rows says.
  int64_t x_offset[Grouped ? 4 * NT : 1];
  if constexpr (Grouped) {
#pragma unroll
    for (int q = 0; q < 4 * NT; q++) {
      const int row = x_row + 2 * q;
      x_offset[q] = row < call.m ? x_row_of(call, row) * call.x_stride : 0;
    }
  }
  const auto x_of_token = [&](int q) { return Grouped ? x + x_offset[q] : x + 2 * q * call.x_stride; };
  const bool scales_x = Unit::row_major && Unit::groups == 1 && call.x_scales != nullptr;
  const int scale_token = Grouped && scales_x && lane < call.m ? x_row_of(call, lane) : lane;
  const float* x_scale = call.x_scales + scale_token * call.x_scale_stride + c0 + warp;
  auto copy_x = [&](int i) {
    const uint32_t to = xs + (i & 1) * XHALF + x_to;
    const bool real = x_column + i * W * 128 < call.k;
#pragma unroll
    for (int q = 0; q < 4 * NT; q++) {
      if (x_row + 2 * q >= call.m) continue;
      copy_async_or_zero(to + 2 * q * XROW, real ? x_of_token(q) + i * W * 128 : call.x, real);
    }
    if (scales_x && lane < call.m) copy_async_word(x_scales + ((i & 1) * 8 * NT + lane) * 4, x_scale + i * W);
  };

  copy_records<Unit>(call, records, row0, S * 16, paired);
#pragma unroll
  for (int g = 0; g < D; g++) {
    source.copy(ring + g * Unit::bytes, D >= S ? g / S : 0, D >= S ? g % S : g, D >= S ? g / S < chunks : chunks > 0);
    copy_async_commit();
  }
  let_next_launch_start();
  wait_for_previous_launch();
  {  // the first two chunks of x through registers, so that they do not queue behind the weights
    uint4 v[2][4 * NT];
    float scale[2] = {};
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int q = 0; q < 4 * NT; q++) {
        v[i][q] = make_uint4(0, 0, 0, 0);
        if (i < chunks && x_row + 2 * q < call.m && x_column + i * W * 128 < call.k)
          v[i][q] = *reinterpret_cast<const uint4*>(x_of_token(q) + i * W * 128);
      }
      if (scales_x && lane < call.m && i < chunks) scale[i] = x_scale[i * W];
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int q = 0; q < 4 * NT; q++)
        if (i < chunks && x_row + 2 * q < call.m) store_shared4(xs + i * XHALF + x_to + 2 * q * XROW, v[i][q]);
      if (scales_x && lane < call.m) store_shared1(x_scales + (i * 8 * NT + lane) * 4, __float_as_uint(scale[i]));
    }
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
    float of_token[NT][2];  // x_scales of this chunk
    const uint32_t slots = ring + ring_chunk * S * Unit::bytes;
    const bool more = i + U < chunks;
#pragma unroll
    for (int s = 0; s < S; s++) {
      copy_async_wait<D - 1>();
      __syncwarp();
      if (s == 0) {
#pragma unroll
        for (int t = 0; t < NT; t++) load_x<Unit>(b[t], xs + (i & 1) * XHALF + t * 8 * XROW, lane);
        if (scales_x) {
#pragma unroll
          for (int t = 0; t < NT; t++)
#pragma unroll
            for (int q = 0; q < 2; q++)
              of_token[t][q] = load_shared_float(x_scales + ((i & 1) * 8 * NT + t * 8 + (lane & 3) * 2 + q) * 4);
        }
      }
      const uint32_t slot = slots + (D >= S ? s : s % D) * Unit::bytes;
      typename Unit::Raw raw;
      Unit::load(raw, slot, lane);
      __syncwarp();
      // The slot is free again: refill it before computing.
      if (D >= S)
        source.copy(slot, U, s, more);
      else if (s + D < S)
        source.copy(slot, 0, s + D, true);
      else
        source.copy(slot, 1, s + D - S, more);
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
          for (int t = 0; t < NT; t++) multiply_16bit<Unit>(sum[s][t], a, b[t][2 * j], b[t][2 * j + 1]);
        } else {
          constexpr int steps = 8 / Unit::groups;
          if (j % steps == 0)
#pragma unroll
            for (int t = 0; t < NT; t++) part[t][0] = part[t][1] = part[t][2] = part[t][3] = 0.f;
#pragma unroll
          for (int t = 0; t < NT; t++) multiply_16bit<Unit>(part[t], a, b[t][2 * j], b[t][2 * j + 1]);
          if (j % steps == steps - 1) {
            const float2 scale = Unit::group_scale(regs, j / steps, call.half_scales);
#pragma unroll
            for (int t = 0; t < NT; t++) {
              if (scales_x)
#pragma unroll
                for (int q = 0; q < 4; q++) part[t][q] *= of_token[t][q & 1];
              sum[s][t][0] = __fmaf_rn(scale.x, part[t][0], sum[s][t][0]);
              sum[s][t][1] = __fmaf_rn(scale.x, part[t][1], sum[s][t][1]);
              sum[s][t][2] = __fmaf_rn(scale.y, part[t][2], sum[s][t][2]);
              sum[s][t][3] = __fmaf_rn(scale.y, part[t][3], sum[s][t][3]);
            }
          }
        }
      }
    }
    source.advance();
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
  auto token_of = [](int e) { return (e >> 7) % NT * 8 + ((e >> 2) & 3) * 2 + (e & 1); };
  auto record_of = [&](int e) {
    const int s = (e >> 7) / NT, row = ((e >> 2) & 31) >> 2;
    return load_shared4(records + (s * 16 + row + (e >> 1 & 1) * 8) * 16);
  };
  auto finished = [&](const uint4& record, int token, float v) {
    float factor = __uint_as_float(record.x) * call.factor;
    if (call.token_factor != nullptr) factor *= call.token_factor[Grouped ? x_row_of(call, token) : token];
    return v * (factor * Unit::left) + __uint_as_float(record.y);
  };
  auto store = [&](int token, int column, float value) {
    call.y[token * call.y_stride + column] = call.half_out ? to_f16(value) : to_bf16(value);
  };
  auto put = [&](int e, float v) {
    const int token = token_of(e);
    const uint4 record = record_of(e);
    const int column = static_cast<int>(record.z);
    if (token < call.m && column >= 0) store(token, column, finished(record, token, v));
  };
  if constexpr (Grouped) {
    using Pairs = StreamFunction::Pairs;
    const Pairs pairs = call.function.pairs;
    if (pairs != Pairs::none) {
      auto sum_of = [&](int e) {
        float v = 0.f;
#pragma unroll
        for (int i = 0; i < W; i++) v += load_shared_float(base + (i * E + e) * 4);
        return v;
      };
      // Up belongs to the next slab, or to the next row; neither number carries.
      static_assert((NT & (NT - 1)) == 0);
      const int to_up = pairs == Pairs::slabs ? NT * 128 : pairs == Pairs::rows ? 16 : 0;
      for (int e = threadIdx.x; e < E; e += W * 32) {
        const int token = token_of(e);
        if ((e & to_up) != 0) continue;
        const uint4 record = record_of(e);
        const int column = static_cast<int>(record.z);
        if (token >= call.m || column < 0) continue;
        const float first = finished(record, token, sum_of(e));
        const float value = to_up == 0 ? alone_value(call.function.function, first)
                                       : gated_value(call.function.function, first,
                                                     finished(record_of(e + to_up), token, sum_of(e + to_up)));
        store(token, pairs == Pairs::rows ? column / 2 : column, value);
      }
      return;
    }
  }
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

// A tile's expert and tokens in place of the call's.
template <class Unit>
__device__ __forceinline__ StreamCall stream_tile_call(const StreamCall& call, const GroupTile& tile) {
  StreamCall own = call;
  const int64_t bytes = tile.expert * call.group.expert_bytes;
  own.units += bytes;
  if constexpr (Unit::row_major) {
    if (call.scales != nullptr) own.scales += bytes;
    own.factors += bytes / 4;
    if (call.bias != nullptr) own.bias += bytes / 4;
    own.columns += bytes / 4;
  } else {
    own.records += bytes / 4;
  }
  own.m = tile.rows;
  own.y += tile.row * call.y_stride;
  if (call.group.x_rows != nullptr) {
    own.group.x_rows += tile.row;
  } else {
    const int x_row = tile.row / call.group.x_divisor;
    own.x += x_row * call.x_stride;
    if (call.token_factor != nullptr) own.token_factor += x_row;
    if (call.x_scales != nullptr) own.x_scales += x_row * call.x_scale_stride;
  }
  return own;
}

template <class Unit, int Tactic, bool Grouped>
__global__ void __launch_bounds__(stream_tactic<Unit, Grouped>(Tactic).warps * 32,
                                  stream_tactic<Unit, Grouped>(Tactic).occupancy)
    stream_kernel(const __grid_constant__ StreamCall call) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
  // No multiprocessor but Hopper's (and a data centre's Blackwell) has this much shared memory.
  if constexpr (stream_shared_bytes(stream_tactic<Unit, Grouped>(Tactic), Unit::bytes) >
                (__CUDA_ARCH__ < 890 || __CUDA_ARCH__ == 1000 ? 166912 : 101376))
    return;
  else
#endif
      if constexpr (Grouped) {
    const int blocks = static_cast<int>(gridDim.x) / call.group.count, tile = static_cast<int>(blockIdx.x) / blocks;
    if (!call.group.ready) wait_for_previous_launch();
    const GroupTile own = group_tile(call.group, tile);
    if (own.expert < 0) return wait_for_previous_launch();  // whoever waits for this launch waits for that one too
    stream_block<Unit, Tactic, true>(stream_tile_call<Unit>(call, own), static_cast<int>(blockIdx.x) - tile * blocks);
  } else {
    stream_block<Unit, Tactic, false>(call, static_cast<int>(blockIdx.x));
  }
}

// ---- launch ----

template <class Unit, bool Rare, bool Grouped, int Tactic>
const void* stream_function() {
  if constexpr (Rare && !stream_tactic<Unit, Grouped>(Tactic).everywhere)
    return nullptr;
  else
    return reinterpret_cast<const void*>(&stream_kernel<Unit, Tactic, Grouped>);
}

// Queues one launch of the tactic chosen by the caller. False: the device refuses it.
template <class Unit, bool Rare, bool Grouped, int... Tactics>
bool launch_stream_tactic(const StreamCall& call, int tactic, void* stream, bool dependent,
                          std::integer_sequence<int, Tactics...>) {
  static const void* const functions[] = {stream_function<Unit, Rare, Grouped, Tactics>()...};
  const StreamTactic& t = stream_tactic<Unit, Grouped>(tactic);
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
  const int blocks = ((call.rows + 15) / 16 + t.slabs - 1) / t.slabs;
  config.gridDim = dim3(blocks * (Grouped ? call.group.count : call.cluster));
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
  constexpr auto count = [](auto of_units, auto of_rows) {
    return std::make_integer_sequence<int, static_cast<int>(Unit::row_major ? of_rows.size() : of_units.size())>();
  };
  if (call.group.count > 0) {
    constexpr auto all = count(stream_group_tactics, stream_row_group_tactics);
    return launch_stream_tactic<Unit, Rare, true>(call, tactic, stream, dependent, all);
  }
  constexpr auto all = count(stream_tactics, stream_row_tactics);
  return launch_stream_tactic<Unit, Rare, false>(call, tactic, stream, dependent, all);
}

}  // namespace gearshift::cuda
