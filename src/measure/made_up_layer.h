// A layer with made-up weights, in memory: for launch tests, and for timing shapes without a checkpoint.
#pragma once

#include <memory>

#include "gearshift/run.h"

namespace gearshift {

// The most common scheme of a family (mxfp4, mxfp8, mxfp6: with quantized activations).
Scheme common_scheme(Family family);

// [n,K] split into parts of `part_rows` rows each. dtype: of the weights of an unquantized layer and of biases.
LayerSpec made_up_spec(const Scheme& scheme, const std::vector<int64_t>& part_rows, int64_t k, bool bias = false,
                       DType dtype = DType::bf16);
// One expert of `layer` as a linear layer; a linear layer stays what it is.
LayerSpec one_expert(LayerSpec layer);

// What a made-up layer is made of. Not movable: its parts point at each other.
struct MadeUpLayer {
  LayerPlan plan;  // its decision has no candidate; use_kernel() gives it one range
  PreparedLayer prepared;
  std::vector<std::vector<uint8_t>> stored;  // the bytes that prepared.weights views

  MadeUpLayer() = default;
  MadeUpLayer(const MadeUpLayer&) = delete;
  MadeUpLayer& operator=(const MadeUpLayer&) = delete;
};

// Weights for any linear layer, in the storage its scheme names; every part has scalars of its own. Codes, scales, zero
// points and group indices are drawn from `seed`: legal values whose products stay near 1.
std::unique_ptr<MadeUpLayer> make_up_layer(LayerSpec layer, uint64_t seed);
std::unique_ptr<MadeUpLayer> make_up_layer(const Scheme& scheme, const std::vector<int64_t>& part_rows, int64_t k,
                                           uint64_t seed, bool bias = false, DType dtype = DType::bf16);

// Packs what `kernel` reads and plans it for every batch size.
Result<void> use_kernel(MadeUpLayer& layer, const Kernel& kernel, int threads);

}  // namespace gearshift
