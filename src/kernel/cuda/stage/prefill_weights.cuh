// Weights on their way to wgmma, one type per format and arithmetic:
//
//   math       of the products
//   bytes      of 16 rows x 128 columns in a stage
//   map_step, map_rows  what these are in the units of the tensor map
//   tactics, tactic  how many it is compiled for, and which
//   in_shared  whether products read weights from shared memory; otherwise from registers:
//     Regs, load  what a lane reads of a unit
//     fragment    words of the step of 32 bytes of K number j
//   promoted   units after which sums move from the tensor core to fp32; 0: never
//   scaled     whether they are multiplied by scales of their 128 columns then
//   passes     whether columns may have to be gone through more than once (prefill_e4m3.cuh)
#pragma once

#include "kernel/cuda/prefill_tactics.h"
#include "kernel/cuda/stage/decode_unit.cuh"
#include "kernel/cuda/stage/hopper.cuh"
#include "kernel/cuda/stage/wgmma.cuh"

namespace gearshift::cuda {

// Values in bf16, finished but for the record's factor: where a format scales sums of integers, its scale is rounded
// into the weight.
template <class Unit>
struct Bf16Weights {
  static constexpr Math math = Math::bf16;
  static constexpr int bytes = Unit::bytes, map_step = bytes / 8, map_rows = 1, promoted = 0;
  static constexpr bool in_shared = false, scaled = false, passes = false;
  static constexpr int tactics = static_cast<int>(prefill_tactics.size());
  static constexpr PrefillTactic tactic(int i) { return prefill_tactics[static_cast<size_t>(i)]; }
  using Regs = typename Unit::Regs;
  GEARSHIFT_DEVICE void load(Regs& regs, uint32_t unit, int lane, bool half_scales) {
    typename Unit::Raw raw;
    Unit::load(raw, unit, lane);
    Unit::expand(regs, raw);
    if constexpr (Unit::groups > 0) {
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
    if constexpr (Unit::groups > 0) scale_fragment(a, regs.scales[j * Unit::groups / 8]);
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
  static constexpr int tactics = static_cast<int>(prefill_row_tactics.size());
  static constexpr PrefillTactic tactic(int i) { return prefill_row_tactics[static_cast<size_t>(i)]; }
};

}  // namespace gearshift::cuda
