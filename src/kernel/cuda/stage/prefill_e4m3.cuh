// Four-bit weights on their way to FP8 products: types as prefill_weights.cuh describes them, decoded from the units of
// kernel/layout/rows16_e4m3.h, and the main loop that moves their sums to fp32 every few columns.
//
// Besides what prefill_weights.cuh says:
//   promote     adds a lane's sums of the tensor core to those of the piece, times the scales that regs hold
//   fragment_of_pass  of types with `passes`: the same for one of several ranges of scales
#pragma once

#include "kernel/cuda/stage/prefill_products.cuh"

namespace gearshift::cuda {

struct E4m3Unit {
  static constexpr Math math = Math::e4m3;
  static constexpr int bytes = 1024 + 64, map_step = bytes / 8, map_rows = 1;
  static constexpr bool in_shared = false, scaled = false;
  static constexpr float left = 1.f;
  static constexpr int tactics = static_cast<int>(prefill_e4m3_tactics.size());
  static constexpr PrefillTactic tactic(int i) { return prefill_e4m3_tactics[static_cast<size_t>(i)]; }
};

// The word of row r (half 0) or r + 8 of step j.
GEARSHIFT_DEVICE uint32_t e4m3_word(const uint4* codes, int j, int half) {
  const uint4& q = codes[j >> 1];
  return (j & 1) == 0 ? (half == 0 ? q.x : q.y) : (half == 0 ? q.z : q.w);
}
GEARSHIFT_DEVICE void load_e4m3_codes(uint4* codes, uint32_t unit, int lane) {
  codes[0] = load_shared4(unit + lane * 16);
  codes[1] = load_shared4(unit + 512 + lane * 16);
}

// A byte permutation looks codes up in a table of eight magnitudes, which a block's shift of the exponent is added to:
// two multiply-adds, off the pipe that everything else here wants.
struct Mxfp4E4m3 : E4m3Unit {
  static constexpr int promoted = 2;
  static constexpr bool passes = true;
  struct Regs {
    uint4 codes[2];
    uint32_t scales[2], table[2];
  };
  GEARSHIFT_DEVICE void load(Regs& regs, uint32_t unit, int lane, bool) {
    load_e4m3_codes(regs.codes, unit, lane);
    const uint2 scales = load_shared2(unit + 1024 + (lane >> 2) * 8);
    regs.scales[0] = scales.x;
    regs.scales[1] = scales.y;
    // 0, 0.5, 1, 1.5 and 2, 3, 4, 6, times 2^-5.
    regs.table[0] = in_register(0x14100800u);
    regs.table[1] = in_register(0x24201C18u);
  }
  GEARSHIFT_DEVICE void decode(uint32_t w, uint32_t low, uint32_t high, uint32_t& first, uint32_t& second) {
    const uint32_t magnitudes = w & 0x77777777u;
    first = and_or<0x80808080u>(w, __byte_perm(low, high, magnitudes));
    second = and_or<0x80808080u>(w << 4, __byte_perm(low, high, magnitudes >> 16));
  }
  GEARSHIFT_DEVICE void fragment(const Regs& regs, int j, uint32_t* a) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint32_t shift = __byte_perm(regs.scales[half], 0, 0x4440 | j);
      decode(e4m3_word(regs.codes, j, half), shift * 0x08080800u + regs.table[0], shift * 0x08080808u + regs.table[1],
             a[half], a[half + 2]);
    }
  }
  // Blocks of one pass only; others are zero.
  GEARSHIFT_DEVICE void fragment_of_pass(const Regs& regs, int j, uint32_t pass, uint32_t* a) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint32_t scale = __byte_perm(regs.scales[half], 0, 0x4440 | j), shift = scale & 15u;
      const bool here = scale >> 4 == pass;
      decode(e4m3_word(regs.codes, j, half), here ? shift * 0x08080800u + regs.table[0] : 0,
             here ? shift * 0x08080808u + regs.table[1] : 0, a[half], a[half + 2]);
    }
  }
  template <int Count>
  GEARSHIFT_DEVICE void promote(const Regs&, float (&sums)[Count], float (&part)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; i++) {
      settle(part[i]);
      sums[i] += part[i];
    }
  }
};

// Bytes of up to 8 are e4m3 numbers of that size: a code needs its magnitude and its sign in place, and no table.
struct Int4E4m3 : E4m3Unit {
  static constexpr int promoted = 1;
  static constexpr bool passes = false;
  struct Regs {
    uint4 codes[2];
    float scales[2];
  };
  GEARSHIFT_DEVICE void load(Regs& regs, uint32_t unit, int lane, bool) {
    load_e4m3_codes(regs.codes, unit, lane);
    regs.scales[0] = load_shared_float(unit + 1024 + (lane >> 2) * 4);
    regs.scales[1] = load_shared_float(unit + 1056 + (lane >> 2) * 4);
  }
  // Four codes, one in the low half of each byte: a negative one gains 1 and the sign.
  GEARSHIFT_DEVICE uint32_t decode(uint32_t w) { return ((w >> 3) & 0x01010101u) * 0x81u + (w & 0x07070707u); }
  GEARSHIFT_DEVICE void fragment(const Regs& regs, int j, uint32_t* a) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint32_t w = e4m3_word(regs.codes, j, half);
      a[half] = decode(w);
      a[half + 2] = decode(w >> 4);
    }
  }
  template <int Count>
  GEARSHIFT_DEVICE void promote(const Regs& regs, float (&sums)[Count], float (&part)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; i++) {
      settle(part[i]);
      sums[i] = __fmaf_rn(part[i], regs.scales[i / 2 % 2], sums[i]);
    }
  }
};

// Sums move on between two batches of fragments: the first of the next is decoded while the last products still run.
template <PrefillTactic T, class Weights>
GEARSHIFT_DEVICE void multiply_promoted(const PrefillCall& call, PrefillRing<T, Weights>& ring,
                                        const PrefillPiece& piece, PrefillSums<T>& sums, int warpgroup, int thread) {
  using Ring = PrefillRing<T, Weights>;
  constexpr int steps = Ring::unit_steps, batches = T.units * steps / T.batch;
  constexpr int period = Weights::promoted * steps / T.batch;  // in batches
  static_assert(batches % 2 == 0, "the two sets of fragments alternate across stages");
  static_assert(batches % period == 0 && period > 0, "sums move on at the beginning of every stage");
  const int warp = thread >> 5, lane = thread & 31;
  float part[T.fragments][T.tokens / 2];
#pragma unroll
  for (int m = 0; m < T.fragments; m++)
#pragma unroll
    for (int i = 0; i < T.tokens / 2; i++) sums.v[m][i] = 0;
  uint32_t a[2][T.batch * T.fragments][4];
  // Scales of the unit before are wanted after those of the next are there.
  typename Weights::Regs regs[2][T.fragments];
  int previous = -1;
  for (int s = piece.first; s < piece.last; s++) {
    ring.wait_full();
    const uint32_t at = ring.stage();
    const uint32_t unit = at + Ring::x_bytes + (warpgroup * T.fragments * 4 + warp) * Weights::bytes;
    const uint64_t first_tokens = swizzled_rows(at);
#pragma unroll
    for (int n = 0; n < batches; n++) {
#pragma unroll
      for (int j = 0; j < T.batch; j++) {
        const int step = n * T.batch + j, u = step / steps;
#pragma unroll
        for (int m = 0; m < T.fragments; m++) {
          if (step % steps == 0)
            Weights::load(regs[u & 1][m], unit + u * Ring::unit_bytes + m * 4 * Weights::bytes, lane, false);
          Weights::fragment(regs[u & 1][m], step % steps, a[n & 1][j * T.fragments + m]);
        }
      }
      if (n % period == 0) {
        products_wait<0>();
        if (n > 0 || previous >= 0) {
#pragma unroll
          for (int m = 0; m < T.fragments; m++)
            Weights::promote(regs[(n * T.batch / steps + 1) & 1][m], sums.v[m], part[m]);
        }
      }
      products_begin();
#pragma unroll
      for (int j = 0; j < T.batch; j++) {
        const int step = n * T.batch + j;
        const uint64_t tokens = first_tokens + (step / 4 * Ring::box_bytes + step % 4 * 32) / 16;
#pragma unroll
        for (int m = 0; m < T.fragments; m++)
          Wgmma<Weights::math, T.tokens>::registers_times_rows(part[m], a[n & 1][j * T.fragments + m], tokens,
                                                               n % period != 0 || j > 0);
      }
      products_commit();
      // All warps have waited for the products of the stage before.
      if (n == 0 && previous >= 0) ring.release(previous, thread);
      products_wait<1>();
    }
    previous = ring.slot;
    ring.advance();
  }
  products_wait<0>();
  ring.release(previous, thread);
#pragma unroll
  for (int m = 0; m < T.fragments; m++) Weights::promote(regs[(T.units - 1) & 1][m], sums.v[m], part[m]);
}

// The number of passes, less one, that a unit of the warpgroup's rows wants: all its warps look at all four slabs, so
// that they agree.
template <PrefillTactic T, class Weights>
GEARSHIFT_DEVICE uint32_t last_pass(uint32_t unit, int lane) {
  uint32_t seen = 0;
#pragma unroll
  for (int m = 0; m < T.fragments; m++) {
    const uint2 scales = load_shared2(unit + (m * 4 + (lane >> 3)) * Weights::bytes + 1024 + (lane & 7) * 8);
    seen |= scales.x | scales.y;
  }
  seen = __reduce_or_sync(0xFFFFFFFFu, seen);
  seen |= seen >> 16;
  return (seen | seen >> 8) >> 4 & 15u;
}

// The same where a row's scales lie too far apart for one sum of FP8 products: a unit is gone through once for each
// range of scales that it may hold.
template <PrefillTactic T, class Weights>
GEARSHIFT_DEVICE void multiply_in_passes(PrefillRing<T, Weights>& ring, const PrefillPiece& piece, PrefillSums<T>& sums,
                                         int warpgroup, int thread) {
  using Ring = PrefillRing<T, Weights>;
  constexpr int steps = Ring::unit_steps;
  const int warp = thread >> 5, lane = thread & 31;
#pragma unroll
  for (int m = 0; m < T.fragments; m++)
#pragma unroll
    for (int i = 0; i < T.tokens / 2; i++) sums.v[m][i] = 0;
  for (int s = piece.first; s < piece.last; s++) {
    ring.wait_full();
#pragma unroll 1
    for (int u = 0; u < T.units; u++) {
      const uint32_t unit =
          ring.stage() + Ring::x_bytes + u * Ring::unit_bytes + warpgroup * T.fragments * 4 * Weights::bytes;
      const uint64_t tokens = swizzled_rows(ring.stage() + u * Ring::box_bytes);
      const uint32_t last = last_pass<T, Weights>(unit, lane);
      float factor = 1;
#pragma unroll 1
      for (uint32_t pass = 0; pass <= last; pass++, factor *= 0x1p-12f) {
        float part[T.fragments][T.tokens / 2];
#pragma unroll
        for (int step = 0; step < steps; step += T.batch) {
          uint32_t a[T.batch][T.fragments][4];
#pragma unroll
          for (int m = 0; m < T.fragments; m++) {
            typename Weights::Regs regs;
            Weights::load(regs, unit + (m * 4 + warp) * Weights::bytes, lane, false);
#pragma unroll
            for (int j = 0; j < T.batch; j++) Weights::fragment_of_pass(regs, step + j, pass, a[j][m]);
          }
          products_begin();
#pragma unroll
          for (int j = 0; j < T.batch; j++)
#pragma unroll
            for (int m = 0; m < T.fragments; m++)
              Wgmma<Weights::math, T.tokens>::registers_times_rows(part[m], a[j][m], tokens + (step + j) * 2,
                                                                   step + j > 0);
          products_commit();
          products_wait<0>();
        }
#pragma unroll
        for (int m = 0; m < T.fragments; m++)
#pragma unroll
          for (int i = 0; i < T.tokens / 2; i++) {
            settle(part[m][i]);
            sums.v[m][i] = __fmaf_rn(part[m][i], factor, sums.v[m][i]);
          }
      }
    }
    ring.release(ring.slot, thread);
    ring.advance();
  }
}

}  // namespace gearshift::cuda
