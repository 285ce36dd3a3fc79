// What ModelOpt says about a checkpoint it quantized: once inside config.json, once in a file of its own.
#pragma once

#include "quantize/rules.h"

namespace gearshift::quantize_detail {

// The quantization_config as JSON text, indented to stand as a member of the root object. One algorithm for the whole
// model where one serves all that is quantized, else MIXED_PRECISION with an entry per layer.
std::string modelopt_quantization_config(const std::vector<LayerSpec>& layers,
                                         const std::vector<Assignment>& assignments);

// The same facts as the text of hf_quant_config.json.
std::string modelopt_hf_quant_config(const std::vector<LayerSpec>& layers, const std::vector<Assignment>& assignments);

}  // namespace gearshift::quantize_detail
