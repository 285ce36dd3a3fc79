// The largest magnitude of each layer's activations: measured from calibration data, or assumed.
#pragma once

#include "gearshift/checkpoint.h"
#include "gearshift/layer.h"
#include "quantize/rules.h"

namespace gearshift::quantize_detail {

// Without calibration: activations up to this magnitude are coded without saturating. NVFP4's block scales then equal
// the block's amax (global scale 6), and blocks down to an amax of 2^-6 keep a full-precision scale; FP8's static scale
// is 1.
inline constexpr float assumed_amax = 448.0f;

struct InputRanges {
  std::vector<float> amax;  // one per layer; assumed_amax where nothing is known or wanted
  std::vector<std::string> notes;
};

// `file`: safetensors with one tensor [..., K] per layer name, or per name of a fused row; "" for none. `rows[i]`:
// number of the fused row that layer i belongs to: parts share their input, so they share its range. Errors: usage (no
// such file, a last dimension that is not K, a type that is no float), damaged_checkpoint (NaN or infinity, a damaged
// file).
Result<InputRanges> input_ranges(const std::string& file, const std::vector<LayerSpec>& layers,
                                 const std::vector<Assignment>& assignments, const std::vector<size_t>& rows,
                                 const std::vector<std::string>& row_names);

}  // namespace gearshift::quantize_detail
