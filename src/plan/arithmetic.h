// Which numbers enter the product, in the words of plans.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// "bf16", "fp16", "fp32".
std::string_view activation_word(DType dtype);
// What the checkpoint asks for: "nvfp4", "mxfp4", "mxfp6", "mxfp8", "fp8", "int8", or the dtype where it asks for
// nothing.
std::string_view activation_word(const LayerSpec& layer, DType dtype);
// What `kernel` does with this layer.
std::string_view activation_word(const Kernel& kernel, const LayerSpec& layer, DType dtype);
// The kernel leaves activations as they come although the checkpoint quantizes them.
bool upgrades_activations(const Kernel& kernel, const LayerSpec& layer);
// The activation scale is made at run time from all rows of x together.
bool scale_spans_rows(const Scheme& scheme);

}  // namespace gearshift
