#include "plan/requests.h"

#include <algorithm>

#include "base/text.h"

namespace gearshift {
namespace {

bool matches(const RequestRule& rule, const LayerSpec& layer) {
  switch (rule.scope) {
    case RequestRule::Scope::pattern:
      return glob_match(rule.glob, layer.name) ||
             std::any_of(layer.parts.begin(), layer.parts.end(),
                         [&](const std::string& part) { return glob_match(rule.glob, part); });
    case RequestRule::Scope::family:
      return rule.kind == layer.kind && rule.family == layer.family;
    case RequestRule::Scope::global:
      return rule.kind == layer.kind;
  }
  return false;
}

}  // namespace

std::string RequestRule::option() const {
  std::string flag = "--" + std::string(field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag + " " + label;
}

std::vector<RequestRule> request_rules(const Policy& policy) {
  std::vector<RequestRule> rules;
  for (const auto& [glob, backend] : policy.layers) {
    RequestRule rule;
    rule.scope = RequestRule::Scope::pattern;
    rule.glob = glob;
    rule.backend = backend;
    rule.field = "layer";
    rule.label = glob + "=" + backend;
    rules.push_back(std::move(rule));
  }
  std::reverse(rules.begin(), rules.end());  // so that the stable sort leaves the later of two equals in front
  std::stable_sort(rules.begin(), rules.end(), [](const RequestRule& a, const RequestRule& b) {
    return glob_literals(a.glob) > glob_literals(b.glob);
  });

  const auto add_choice = [&](const BackendChoice& choice, LayerKind kind, std::string_view field) {
    RequestRule rule;
    rule.kind = kind;
    rule.field = field;
    rule.scope = RequestRule::Scope::family;
    for (const auto& [family, backend] : choice.families) {
      rule.family = family;
      rule.backend = backend;
      rule.label = std::string(name(family)) + "=" + backend;
      rules.push_back(rule);
    }
    rule.scope = RequestRule::Scope::global;
    rule.backend = rule.label = choice.global;
    rules.push_back(std::move(rule));
  };
  add_choice(policy.linear, LayerKind::linear, "linear_backend");
  add_choice(policy.moe, LayerKind::experts, "moe_backend");
  return rules;
}

size_t request_for(const std::vector<RequestRule>& rules, const LayerSpec& layer) {
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const RequestRule& r) { return matches(r, layer); });
  return static_cast<size_t>(rule - rules.begin());
}

}  // namespace gearshift
