// The main loop of the prefill kernel: the products of one piece of work, for weights that come through registers and
// for weights that products read where they lie.
#pragma once

#include "kernel/cuda/stage/prefill_sums.cuh"
#include "kernel/cuda/stage/prefill_weights.cuh"

namespace gearshift::cuda {

template <class Weights>
constexpr PrefillBytes prefill_bytes_of() {
  return {Weights::bytes, element_bytes(Weights::math), Weights::scaled ? 4 : 0};
}

// The stages of a block in shared memory, and where a thread is in their round.
template <PrefillTactic T, class Weights>
struct PrefillRing {
  static constexpr PrefillBytes bytes = prefill_bytes_of<Weights>();
  static constexpr int count = prefill_stages(T, bytes), stage_bytes = prefill_stage_bytes(T, bytes);
  static constexpr int x_bytes = prefill_x_bytes(T, bytes), weight_bytes = prefill_weight_bytes(T, bytes);
  static constexpr int scale_bytes = prefill_scale_bytes(T, bytes);
  static constexpr int box_bytes = T.tokens * 128;           // of tokens, 128 bytes of K
  static constexpr int unit_bytes = weight_bytes / T.units;  // of weights, 128 columns
  static constexpr int unit_steps = 4 * bytes.element;       // of 32 bytes of K
  uint32_t base, full, empty;                                // stages; barriers
  int slot = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ uint32_t stage() const { return base + slot * stage_bytes; }
  __device__ __forceinline__ void wait_full() const { barrier_wait(full + slot * 8, parity); }
  // Arrivals of a warpgroup that make a stage free. Products of a warpgroup end together, so one thread speaks for it;
  // where its warps also read scales, each for itself.
  static constexpr int arrivals = Weights::scaled ? 4 : 1;
  // Products no longer read a stage: every block that copies into it may do so again.
  __device__ __forceinline__ void release(int which, int thread) const {
    if constexpr (Weights::scaled) __syncwarp();
    const int speaker = Weights::scaled ? thread & 31 : thread;
    if constexpr (T.multicast > 1) {
      if (speaker < 2) barrier_arrive_there(in_block(empty + which * 8, speaker));
    } else {
      if (speaker == 0) barrier_arrive(empty + which * 8);
    }
  }
  __device__ __forceinline__ void advance() {
    if (++slot == count) {
      slot = 0;
      parity ^= 1;
    }
  }
};

// A batch of fragments is decoded while the products of the batch before run.
template <PrefillTactic T, class Weights>
GEARSHIFT_DEVICE void multiply_from_registers(const PrefillCall& call, PrefillRing<T, Weights>& ring,
                                              const PrefillPiece& piece, PrefillSums<T>& sums, int row_tile,
                                              int warpgroup, int thread) {
  using Ring = PrefillRing<T, Weights>;
  constexpr int steps = Ring::unit_steps, batches = T.units * steps / T.batch;
  static_assert(batches % 2 == 0, "the two sets of fragments alternate across stages");
  const int warp = thread >> 5, lane = thread & 31;
#pragma unroll
  for (int m = 0; m < T.fragments; m++)
#pragma unroll
    for (int i = 0; i < T.tokens / 2; i++) sums.v[m][i] = 0;
  uint32_t a[2][T.batch * T.fragments][4];
  RowScaleWords<T, Weights::scale_words> scales(call, row_tile, warpgroup, thread, piece.first);
  int previous = -1;
  for (int s = piece.first; s < piece.last; s++) {
    scales.advance(call, s + 1);
    ring.wait_full();
    const uint32_t at = ring.stage();
    const uint32_t unit = at + Ring::x_bytes + (warpgroup * T.fragments * 4 + warp) * Weights::bytes;
    const uint64_t first_tokens = swizzled_rows(at);
    typename Weights::Regs regs[T.fragments];
#pragma unroll
    for (int n = 0; n < batches; n++) {
#pragma unroll
      for (int j = 0; j < T.batch; j++) {
        const int step = n * T.batch + j;
#pragma unroll
        for (int m = 0; m < T.fragments; m++) {
          if (step % steps == 0)
            Weights::load(regs[m], unit + step / steps * Ring::unit_bytes + m * 4 * Weights::bytes, lane,
                          call.half_scales, scales.of(step / steps, m));
          Weights::fragment(regs[m], step % steps, a[n & 1][j * T.fragments + m]);
        }
      }
      products_begin();
#pragma unroll
      for (int j = 0; j < T.batch; j++) {
        const int step = n * T.batch + j;
        const uint64_t tokens = first_tokens + (step / 4 * Ring::box_bytes + step % 4 * 32) / 16;
#pragma unroll
        for (int m = 0; m < T.fragments; m++)
          Wgmma<Weights::math, T.tokens>::registers_times_rows(sums.v[m], a[n & 1][j * T.fragments + m], tokens, true);
      }
      products_commit();
      products_wait<1>();
      // Now nothing of the stage before is under way any more.
      if (n == 0 && previous >= 0) ring.release(previous, thread);
    }
    previous = ring.slot;
    ring.advance();
  }
  products_wait<0>();
#pragma unroll
  for (int m = 0; m < T.fragments; m++)
#pragma unroll
    for (int i = 0; i < T.tokens / 2; i++) settle(sums.v[m][i]);
  ring.release(previous, thread);
}

// Tensor-core sums of a unit, times the scales of their columns, added to those of the piece: `rows`, the lane's two of
// each fragment, and the tile's tokens at `tokens`.
template <PrefillTactic T>
GEARSHIFT_DEVICE void promote_scaled(PrefillSums<T>& sums, float (&part)[T.fragments][T.tokens / 2],
                                     const float (&rows)[T.fragments][2], uint32_t tokens, int lane) {
#pragma unroll
  for (int i = 0; i < T.tokens / 8; i++) {
    const uint2 pair = load_shared2(tokens + (i * 8 + (lane & 3) * 2) * 4);
    const float first = __uint_as_float(pair.x), second = __uint_as_float(pair.y);
#pragma unroll
    for (int m = 0; m < T.fragments; m++) {
      float *v = sums.v[m] + i * 4, *p = part[m] + i * 4;
#pragma unroll
      for (int q = 0; q < 4; q++) settle(p[q]);
      v[0] = __fmaf_rn(p[0], first * rows[m][0], v[0]);
      v[1] = __fmaf_rn(p[1], second * rows[m][0], v[1]);
      v[2] = __fmaf_rn(p[2], first * rows[m][1], v[2]);
      v[3] = __fmaf_rn(p[3], second * rows[m][1], v[3]);
    }
  }
}

// Products of the unit or units from `rows` and `tokens` on; the first overwrites the sums unless `add`.
template <PrefillTactic T, class Weights, int Units>
GEARSHIFT_DEVICE void multiply_stage(typename Wgmma<Weights::math, T.tokens>::Sum (&part)[T.fragments][T.tokens / 2],
                                     uint64_t rows, uint64_t tokens, bool add) {
  using Ring = PrefillRing<T, Weights>;
  products_begin();
#pragma unroll
  for (int u = 0; u < Units; u++)
#pragma unroll
    for (int step = 0; step < Ring::unit_steps; step++)
#pragma unroll
      for (int m = 0; m < T.fragments; m++)
        Wgmma<Weights::math, T.tokens>::rows_times_rows(
            part[m], rows + (u * Ring::unit_bytes + m * 64 * 128 + step * 32) / 16,
            tokens + (u * Ring::box_bytes + step * 32) / 16, u + step > 0 || add);
  products_commit();
}

// Products of stages s up to `end`, which is moved to; nothing is under way afterwards. Added to `part`, or in its
// place.
template <bool Add, PrefillTactic T, class Weights>
GEARSHIFT_DEVICE void multiply_stages(PrefillRing<T, Weights>& ring, int& s, int end,
                                      typename Wgmma<Weights::math, T.tokens>::Sum (&part)[T.fragments][T.tokens / 2],
                                      int warpgroup, int thread) {
  using Ring = PrefillRing<T, Weights>;
  int previous = -1;
  for (bool add = Add; s < end; s++, add = true) {
    ring.wait_full();
    const uint64_t tokens = swizzled_rows(ring.stage());
    const uint64_t rows = swizzled_rows(ring.stage() + Ring::x_bytes + warpgroup * T.fragments * 64 * 128);
    multiply_stage<T, Weights, T.units>(part, rows, tokens, add);
    products_wait<1>();
    if (previous >= 0) ring.release(previous, thread);
    previous = ring.slot;
    ring.advance();
  }
  products_wait<0>();
  ring.release(previous, thread);
}

// Codes with one scale a row: sums move on after some units, or at the end.
template <PrefillTactic T, class Weights>
GEARSHIFT_DEVICE void multiply_from_shared(PrefillRing<T, Weights>& ring, const PrefillPiece& piece,
                                           PrefillSums<T>& sums, int warpgroup, int thread) {
  typename Wgmma<Weights::math, T.tokens>::Sum part[T.fragments][T.tokens / 2];
  int s = piece.first;
  if constexpr (Weights::promoted > 0) {
    constexpr int period = Weights::promoted > T.units ? Weights::promoted / T.units : 1;  // in stages
#pragma unroll
    for (int m = 0; m < T.fragments; m++)
#pragma unroll
      for (int i = 0; i < T.tokens / 2; i++) sums.v[m][i] = 0;
    while (s < piece.last) {
      multiply_stages<false, T, Weights>(ring, s, min(s + period, piece.last), part, warpgroup, thread);
#pragma unroll
      for (int m = 0; m < T.fragments; m++)
#pragma unroll
        for (int i = 0; i < T.tokens / 2; i++) {
          settle(part[m][i]);
          sums.v[m][i] += part[m][i];
        }
    }
  } else {
#pragma unroll
    for (int m = 0; m < T.fragments; m++)
#pragma unroll
      for (int i = 0; i < T.tokens / 2; i++) part[m][i] = 0;
    multiply_stages<true, T, Weights>(ring, s, piece.last, part, warpgroup, thread);
#pragma unroll
    for (int m = 0; m < T.fragments; m++)
#pragma unroll
      for (int i = 0; i < T.tokens / 2; i++) {
        settle(part[m][i]);
        sums.v[m][i] = static_cast<float>(part[m][i]);
      }
  }
}

// Codes with scales per unit. While one warpgroup moves its sums on, the products of the other run.
template <PrefillTactic T, class Weights>
GEARSHIFT_DEVICE void multiply_scaled(const PrefillCall& call, PrefillRing<T, Weights>& ring, const PrefillPiece& piece,
                                      PrefillSums<T>& sums, int row_tile, int warpgroup, int thread) {
  using Ring = PrefillRing<T, Weights>;
  const int lane = thread & 31;
  float part[T.fragments][T.tokens / 2];
  const float* row_scales[T.fragments][2];
#pragma unroll
  for (int m = 0; m < T.fragments; m++) {
#pragma unroll
    for (int i = 0; i < T.tokens / 2; i++) sums.v[m][i] = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int row = fragment_row<T>(row_tile, warpgroup, m, thread >> 5) + (lane >> 2) + i * 8;
      row_scales[m][i] = call.row_scales + min(row, call.rows.count - 1) * call.row_scale_step;
    }
  }
  for (int s = piece.first; s < piece.last; s++) {
    float scales[T.units][T.fragments][2];
#pragma unroll
    for (int u = 0; u < T.units; u++)
#pragma unroll
      for (int m = 0; m < T.fragments; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) scales[u][m][i] = row_scales[m][i][min(s * T.units + u, call.units - 1)];
    ring.wait_full();
    const uint32_t at = ring.stage();
    const uint64_t rows = swizzled_rows(at + Ring::x_bytes + warpgroup * T.fragments * 64 * 128);
#pragma unroll
    for (int u = 0; u < T.units; u++) {
      multiply_stage<T, Weights, 1>(part, rows + u * Ring::unit_bytes / 16,
                                    swizzled_rows(at) + u * Ring::box_bytes / 16, false);
      products_wait<0>();
      promote_scaled<T>(sums, part, scales[u], at + Ring::x_bytes + Ring::weight_bytes + u * T.tokens * 4, lane);
    }
    ring.release(ring.slot, thread);
    ring.advance();
  }
}

}  // namespace gearshift::cuda
