// Which preset each module gets: the most specific rule that matches its name.
#pragma once

#include "gearshift/quantize.h"
#include "quantize/preset.h"

namespace gearshift::quantize_detail {

struct Assignment {
  const Preset* preset = nullptr;  // UNQUANTIZED where the module stays float
  int rule = -1;                   // index of the rule that decided; -1: none did
};

struct RuleResult {
  std::vector<Assignment> modules;  // one per layer, in their order
  std::vector<std::string> notes;   // layers that a rule for all layers leaves alone, and why
};

// `layers`: unfused, float. A rule with more literal characters wins; of equals the later one. Rules without any
// literal character ("" or "*") are for all layers and leave out what serving engines keep float: output heads and
// routers. Errors usage: no rule, an unknown preset, a rule that matches nothing, a layer its preset cannot code.
Result<RuleResult> apply_rules(const std::vector<LayerSpec>& layers, const std::vector<QuantizeRule>& rules,
                               Container container);

}  // namespace gearshift::quantize_detail
