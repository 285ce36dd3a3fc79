// Passes over the source floats of one tensor, row-parallel: its range, and its coding by a recipe.
#pragma once

#include "gearshift/checkpoint.h"
#include "quantize/recipe.h"

namespace gearshift::quantize_detail {

// Largest magnitude. Error damaged_checkpoint: the first element that is NaN or infinite, by its position.
Result<float> finite_amax(const std::string& name, DType dtype, const Shape& shape, ByteView bytes);

// Reconstructed against original weights; norms in float64.
struct WeightError {
  double relative = 0;   // |W - V| / |W|, Frobenius; 0 where both are zero
  double cosine = 1;     // between all elements; 1 where both are zero
  double worst_row = 0;  // the largest relative error of a row
};

// Codes the whole matrix. `out`: one zero-filled buffer per tensor of the recipe.
WeightError encode_matrix(const Recipe& recipe, const ModuleFacts& facts, ByteView bytes,
                          std::span<uint8_t* const> out);

}  // namespace gearshift::quantize_detail
