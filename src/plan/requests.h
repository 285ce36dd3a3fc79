// Which backend is asked for, layer by layer: pattern over family over global.
#pragma once

#include "gearshift/plan.h"

namespace gearshift {

// One thing the user said about backends.
struct RequestRule {
  enum class Scope : uint8_t { pattern, family, global };
  Scope scope = Scope::global;
  std::string glob;                    // scope pattern
  LayerKind kind = LayerKind::linear;  // scopes family and global: which option it belongs to
  Family family = Family::bf16;        // scope family
  std::string backend = "auto";
  std::string_view field;  // "linear_backend", "moe_backend", "layer"
  std::string label;       // as `policy.unused` shows it: "native", "fp8_w8a8=native", "*.mlp.*=native"

  bool asks() const { return backend != "auto"; }
  std::string option() const;  // as on the command line: "--linear-backend fp8_w8a8=native"
};

// Most specific first: patterns by literal characters (on a tie the later one), families, globals; every layer matches
// one.
std::vector<RequestRule> request_rules(const Policy& policy);
// Index of the first rule that matches.
size_t request_for(const std::vector<RequestRule>& rules, const LayerSpec& layer);

}  // namespace gearshift
