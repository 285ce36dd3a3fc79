// config.json of a quantized checkpoint: the original text with a quantization_config.
#pragma once

#include "gearshift/quantize.h"
#include "quantize/rules.h"

namespace gearshift::quantize_detail {

// The quantization_config of compressed-tensors as JSON text, indented to stand as a member of the root object. One
// group per preset, in order of first use. Targets: "Linear" where one preset serves all that is quantized; else the
// rules' patterns as regular expressions where these select exactly the group, exact names otherwise. `ignore` lists
// the linear layers that stay float.
std::string quantization_config(const std::vector<LayerSpec>& layers, const std::vector<Assignment>& assignments,
                                const std::vector<QuantizeRule>& rules);

// `config` with `member` as "quantization_config"; everything else keeps its text and order. An empty text is "{}"; an
// existing member of that name is replaced. REQUIRES: `config` is valid JSON. Error damaged_checkpoint: no object.
Result<std::string> with_quantization_config(const std::string& config, const std::string& member);

// The linear layers that stay float.
std::vector<std::string> float_names(const std::vector<LayerSpec>& layers, const std::vector<Assignment>& assignments);

std::string json_string(std::string_view text);
// One string a line, two spaces deeper than `indent`; "[]" for none.
std::string json_list(const std::vector<std::string>& items, const std::string& indent);

// "re:" + the regular expression (anchored at the start when used) that matches what the glob matches.
std::string glob_to_regex(std::string_view glob);

}  // namespace gearshift::quantize_detail
