// What the copying thread of the prefill kernel asks for: weights and tokens of one stage.
#pragma once

#include "kernel/cuda/stage/prefill_products.cuh"

namespace gearshift::cuda {

// The weights of a stage, and the number of bytes that the whole stage will have.
template <PrefillTactic T, class Weights>
GEARSHIFT_DEVICE void copy_weights(const PrefillRing<T, Weights>& ring, int slot, const TensorMap& map, int row_tile,
                                   int stage) {
  using Ring = PrefillRing<T, Weights>;
  const uint32_t barrier = ring.full + slot * 8, to = ring.base + slot * Ring::stage_bytes + Ring::x_bytes;
  barrier_arrive_with_bytes(barrier, Ring::x_bytes + Ring::weight_bytes + Ring::scale_bytes);
#pragma unroll
  for (int u = 0; u < T.units; u++)
    copy_box(to + u * Ring::unit_bytes, &map, (stage * T.units + u) * Weights::map_step,
             row_tile * (prefill_rows(T) / 16) * Weights::map_rows, barrier);
}

// The tokens of the ring's stage, and their scales.
template <PrefillTactic T, class Weights>
GEARSHIFT_DEVICE void copy_tokens(const PrefillCall& call, const PrefillRing<T, Weights>& ring, const TensorMap& map,
                                  int token, int stage, int rank) {
  using Ring = PrefillRing<T, Weights>;
  constexpr int element = Ring::bytes.element, boxes = T.units * element;
  const uint32_t barrier = ring.full + ring.slot * 8, at = ring.stage();
#pragma unroll
  for (int b = 0; b < boxes; b++) {
    const uint32_t to = at + b * Ring::box_bytes;
    const int column = (stage * boxes + b) * (128 / element);
    if constexpr (T.multicast > 1)
      copy_box_to_both(to + rank * (Ring::box_bytes / 2), &map, column, token + rank * (T.tokens / 2), barrier);
    else
      copy_box(to, &map, column, token, barrier);
  }
  if constexpr (Weights::scaled) {
#pragma unroll
    for (int u = 0; u < T.units; u++) {
      // Past the last unit products are zero, whatever they are scaled by.
      const int unit = min(stage * T.units + u, call.units - 1);
      copy_line(at + Ring::x_bytes + Ring::weight_bytes + u * T.tokens * 4,
                call.token_scales + unit * call.token_scale_step + token, T.tokens * 4, barrier);
    }
  }
}

}  // namespace gearshift::cuda
