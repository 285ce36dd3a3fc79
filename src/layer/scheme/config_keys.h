// What the readers of quantization dictionaries share: typed members, and rules about modules that lists do not name.
#pragma once

#include "layer/scheme/scheme.h"

namespace gearshift {

ErrorInfo unsupported_scheme(std::string subject, std::string found, std::string wanted);
// Null and absent give an empty list. Error damaged_checkpoint: anything but a list of strings.
Result<std::vector<std::string>> string_list(const Json* json, const std::string& subject);
// The first of `keys` that is there and not null. `where` names the object. Error damaged_checkpoint: no integer.
Result<std::optional<int64_t>> integer_member(const Json& object, std::initializer_list<std::string_view> keys,
                                              const std::string& where);
// Columns per scale under `group_size` or `q_group_size`; -1: one group a row. Error damaged_checkpoint: 0, or absurd.
Result<int64_t> group_size_member(const Json& object, const std::string& where, int64_t otherwise);

// The name that the dictionary's rules see; nullopt: the dictionary does not reach this module, it stays in float.
std::optional<std::string> rule_name(const ModelConfig& config, const ModuleTensors& module);
// Modules that writers leave in float without listing them: routers, output heads, draft layers, towers for other
// senses.
bool stays_float_unlisted(const ModuleTensors& module);
// The same by the config alone: draft layers are converted, too, but not their heads and what projects into them.
bool is_never_converted(const ModuleTensors& module);
// A layer between embedding and head of the language model, no router or draft: what writers quantize who go through
// the decoder's blocks.
bool is_in_decoder(const ModuleTensors& module);
// A float weight where `expected` ("FP8 tensors") was promised.
ErrorInfo unexpected_float(const ModuleTensors& module, const std::string& expected, const QuantConfig& quant);

// `part` stands in `name` between dots: "mlp.gate" in "layers.0.mlp.gate.x", not in "layers.0.mlp.gate_proj".
bool has_components(std::string_view name, std::string_view part);

}  // namespace gearshift
