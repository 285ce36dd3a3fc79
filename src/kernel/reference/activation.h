// Activations as a checkpoint's recipe makes them, in the exact order of its fp32 operations. Used by the reference and
// by the kernels alike, because these roundings are part of what a layer computes, not of how.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// x enters a product as value[k] = code[k] * scale[k / group] * factor; code is exact, in units of the scale.
struct ActivationGroups {
  int64_t group = 0;  // columns per scale
  int64_t count = 1;  // scales per row
};
// One group of all columns where the recipe makes no scales along a row, or `use` takes x as it is.
ActivationGroups activation_groups(const Scheme& scheme, int64_t k, ActivationUse use);
bool quantizes(const Scheme& scheme, ActivationUse use);
// Parts that share one quantized x: two parts do when their stored scalars and column vectors are equal.
bool same_activations(const PartWeights& a, const PartWeights& b);
// How many different versions of x the parts of such a layer may need at most.
int64_t activation_versions(const LayerSpec& layer, ActivationUse use);
// The version that a part reads: the number of the first part with the same scalars; 0 when there is one version.
size_t activation_version(const LayerWeights& weights, size_t part, int64_t versions);

// Columns [k0, k0 + count) of row `row` as fp32, times the part's column vector where it has one (a product in fp32).
void load_row(const ConstMatrix& x, int64_t row, int64_t k0, int64_t count, const PartWeights& part, float* out);

// The scale that a dynamic per-tensor recipe makes from all of x; 0 for every other scheme. `scratch`: K floats.
float dynamic_tensor_scale(const Scheme& scheme, const ConstMatrix& x, const PartWeights& part, ActivationUse use,
                           float* scratch);

// values[K]: a loaded row in, codes out; scales[count]. Returns the factor. `tensor_scale`: from the function above.
double quantize_row(const Scheme& scheme, const PartWeights& part, ActivationUse use, float tensor_scale, float* values,
                    int64_t k, float* scales);

// The multiplier of x before NVFP4 coding, and what it is divided out by.
float nvfp4_input_global(const ActivationScheme& scheme, const PartWeights& part);
double nvfp4_input_factor(const ActivationScheme& scheme, const PartWeights& part);

}  // namespace gearshift
