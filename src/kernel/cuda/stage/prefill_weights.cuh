// Weights on their way to wgmma, one type per format and arithmetic:
//
//   math       of the products
//   bytes      of 16 rows x 128 columns in a stage
//   map_step, map_rows  what these are in the units of the tensor map
//   tactics, tactic  how many it is compiled for, and which
//   in_shared  whether products read weights from shared memory; otherwise from registers:
//     Regs, load  what a lane reads of a unit
//     fragment    words of the step of 32 bytes of K number j
//     scale_words whether rows have a word of scales for each unit beside their codes
//     left        what results are multiplied by besides their record's factor
//   promoted   units after which sums move from the tensor core to fp32; 0: never
//   scaled     whether they are multiplied by scales of their 128 columns then
//   passes     whether columns may have to be gone through more than once (prefill_e4m3.cuh)
#pragma once

#include "kernel/cuda/prefill_tactics.h"
#include "kernel/cuda/stage/decode_pairs.cuh"
#include "kernel/cuda/stage/decode_unit.cuh"
#include "kernel/cuda/stage/prefill_sums.cuh"
#include "kernel/cuda/stage/wgmma.cuh"

namespace gearshift::cuda {

// Units of 16 rows x 128 columns. Values are finished but for the record's factor: where a format scales sums of
// integers, its scale is rounded into the weight.
template <class Unit>
struct UnitWeights {
  static constexpr Math math = Unit::half ? Math::f16 : Math::bf16;
  static constexpr int bytes = Unit::bytes, map_step = bytes / 8, map_rows = 1, promoted = 0;
  static constexpr bool in_shared = false, scaled = false, passes = false, scale_words = false;
  static constexpr float left = Unit::left;
  static constexpr int tactics = static_cast<int>(prefill_tactics.size());
  static constexpr PrefillTactic tactic(int i) { return prefill_tactics[static_cast<size_t>(i)]; }
  using Regs = typename Unit::Regs;
  GEARSHIFT_DEVICE void load(Regs& regs, uint32_t unit, int lane, bool half_scales, uint2) {
    typename Unit::Raw raw;
    Unit::load(raw, unit, lane);
    Unit::expand(regs, raw);
    if constexpr (Unit::groups > 0 && !Unit::half) {
      if (half_scales) {
#pragma unroll
        for (int g = 0; g < Unit::groups; g++) {
          const float2 scale = Unit::group_scale(regs, g, true);
          regs.scales[g] = bf16_pair(scale.x, scale.y);
        }
      }
    }
  }
  GEARSHIFT_DEVICE void fragment(const Regs& regs, int j, uint32_t* a) {
    Unit::step(regs, j, a);
    if constexpr (Unit::groups > 0) scale_fragment<Unit::half>(a, regs.scales[j * Unit::groups / 8]);
  }
};

// Codes of a byte each, row by row, that become 16-bit floats in registers.
template <class Pair, RowScales Scales>
struct CodeWeights {
  static constexpr Math math = Pair::half ? Math::f16 : Math::bf16;
  static constexpr int bytes = row_tile_bytes, map_step = 128, map_rows = 16, promoted = 0;
  static constexpr bool in_shared = false, scaled = false, passes = false;
  static constexpr bool scale_words = Scales != RowScales::none;
  static constexpr float left = ScaledPair<Pair, Scales>::left;
  static constexpr int tactics = static_cast<int>(prefill_code_tactics.size());
  static constexpr PrefillTactic tactic(int i) { return prefill_code_tactics[static_cast<size_t>(i)]; }
  struct Regs {
    uint32_t at;  // this lane's first pair of row r
    ScaledPair<Pair, Scales> scales;
  };
  GEARSHIFT_DEVICE void load(Regs& regs, uint32_t unit, int lane, bool, uint2 words) {
    const int row = lane >> 2, t = lane & 3;
    regs.at = unit + row * (128 + 16) + t * 2;
    regs.scales.take(words);
  }
  // Piece c of a row lies at c ^ (row % 8).
  GEARSHIFT_DEVICE void fragment(const Regs& regs, int j, uint32_t* a) {
    const uint32_t at = regs.at ^ (j * 16);
    a[0] = Pair::decode(load_shared_u16(at));
    a[1] = Pair::decode(load_shared_u16(at + 8 * 128));
    a[2] = Pair::decode(load_shared_u16(at + 8));
    a[3] = Pair::decode(load_shared_u16(at + 8 * 128 + 8));
    regs.scales.apply(j, a);
  }
};

// Codes of 8 bits, row by row. The tensor core adds fp8 products with some 13 bits of mantissa, so its sums move on
// before they grow long.
template <Math M, bool Scaled>
struct RowWeights {
  static constexpr Math math = M;
  static constexpr int bytes = 16 * 128, map_step = 128, map_rows = 16;
  static constexpr int promoted = Scaled ? 1 : M == Math::e4m3 ? 2 : 0;
  static constexpr bool in_shared = true, scaled = Scaled, passes = false;
  static constexpr float left = 1.f;
  static constexpr int tactics = static_cast<int>(prefill_row_tactics.size());
  static constexpr PrefillTactic tactic(int i) { return prefill_row_tactics[static_cast<size_t>(i)]; }
};

// Scales beside row-major codes: of the lane's two rows of each fragment a word for every unit of a stage, on its way
// one stage ahead.
template <PrefillTactic T, bool Real>
class RowScaleWords {
 public:
  __device__ __forceinline__ RowScaleWords(const PrefillCall& call, int row_tile, int warpgroup, int thread,
                                           int stage) {
#pragma unroll
    for (int m = 0; m < T.fragments; m++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int row = fragment_row<T>(row_tile, warpgroup, m, thread >> 5) + ((thread & 31) >> 2) + i * 8;
        rows_[m][i] = call.row_scales + min(row, call.rows.count - 1) * call.row_scale_step;
      }
    fetch(call, stage);
  }
  // What was fetched is what `of` gives; the words of `stage` come next.
  __device__ __forceinline__ void advance(const PrefillCall& call, int stage) {
#pragma unroll
    for (int u = 0; u < T.units; u++)
#pragma unroll
      for (int m = 0; m < T.fragments; m++) now_[u][m] = next_[u][m];
    fetch(call, stage);
  }
  __device__ __forceinline__ uint2 of(int unit, int fragment) const { return now_[unit][fragment]; }

 private:
  __device__ __forceinline__ void fetch(const PrefillCall& call, int stage) {
#pragma unroll
    for (int u = 0; u < T.units; u++) {
      const int unit = min(stage * T.units + u, call.units - 1);
#pragma unroll
      for (int m = 0; m < T.fragments; m++)
        next_[u][m] = make_uint2(__float_as_uint(rows_[m][0][unit]), __float_as_uint(rows_[m][1][unit]));
    }
  }
  const float* rows_[T.fragments][2];
  uint2 now_[T.units][T.fragments], next_[T.units][T.fragments];
};
template <PrefillTactic T>
class RowScaleWords<T, false> {
 public:
  __device__ __forceinline__ RowScaleWords(const PrefillCall&, int, int, int, int) {}
  __device__ __forceinline__ void advance(const PrefillCall&, int) {}
  __device__ __forceinline__ uint2 of(int, int) const { return make_uint2(0, 0); }
};

}  // namespace gearshift::cuda
