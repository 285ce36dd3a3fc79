#include "plan/assumed.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "plan/policy_names.h"

namespace gearshift {
namespace {

// A package brings its parts: "flashinfer" brings "flashinfer.cute_dsl".
bool is_part_of(std::string_view part, std::string_view package) {
  return part == package || (part.starts_with(package) && part.substr(package.size()).starts_with('.'));
}

using Packages = std::set<std::string>;

void add_package(const Registry& registry, std::string_view package, Packages& packages) {
  packages.insert(std::string(package.substr(0, package.find('.'))));
  for (std::string_view known : registry.packages)
    if (is_part_of(known, package)) packages.insert(std::string(known));
}

Packages installed_by_default(const Registry& registry, Platform platform) {
  Packages packages;
  for (const DefaultInstall& install : registry.default_install) {
    if (install.platform != platform) continue;
    for (std::string_view package : install.packages) add_package(registry, package, packages);
  }
  return packages;
}

// A registry that asks about nothing still refuses words that nobody knows; those it could be asked about touch
// nothing.
const Registry& dictionary_of(const Registry& registry) {
  return registry.packages.empty() && registry.facts.empty() ? vllm_registry() : registry;
}

Result<void> check_packages(const std::vector<std::string>& packages, const std::string& option,
                            const Registry& dictionary) {
  for (const std::string& package : packages) {
    const auto& known = dictionary.packages;
    if (std::find(known.begin(), known.end(), package) == known.end())
      return unknown_name(option, "a library", package, known);
  }
  return {};
}

std::string_view wanted_value(Fact::Kind kind) {
  switch (kind) {
    case Fact::Kind::flag:
      return "0 or 1";
    case Fact::Kind::number:
      return "a whole number";
    case Fact::Kind::version:
      return "a version such as 12.4";
    case Fact::Kind::text:
      return "a text";
  }
  return "";
}

// The value as contracts compare it; nullopt: of another kind.
std::optional<std::string> normal(Fact::Kind kind, const std::string& value) {
  const std::string word = lower(value);
  switch (kind) {
    case Fact::Kind::flag:
      if (word == "1" || word == "true") return "1";
      if (word == "0" || word == "false") return "0";
      return std::nullopt;
    case Fact::Kind::number:
      return parse_integer(value) ? std::optional(value) : std::nullopt;
    case Fact::Kind::version: {
      const std::vector<std::string> parts = split(value, '.');
      const bool numbers = std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
        return !part.empty() && part.front() != '-' && parse_integer(part).has_value();
      });
      return numbers ? std::optional(value) : std::nullopt;
    }
    case Fact::Kind::text:
      return value;
  }
  return std::nullopt;
}

Result<void> state(const std::pair<std::string, std::string>& statement, const Registry& registry, Assumed& assumed) {
  const Registry& dictionary = dictionary_of(registry);
  const auto& [fact_name, value] = statement;
  const Fact* fact = dictionary.find_fact(fact_name);
  if (fact == nullptr) {
    std::vector<std::string_view> valid;
    for (const Fact& known : dictionary.facts) valid.push_back(known.name);
    return unknown_name("--assume", "a switch or fact", fact_name, valid);
  }
  const std::optional<std::string> normalised = normal(fact->kind, value);
  if (!normalised)
    return wrong_value("--assume " + fact_name, "'" + printable(value) + "'", std::string(wanted_value(fact->kind)));
  if (&dictionary != &registry) {
    assumed.unused.push_back("--assume " + fact_name);
    return {};
  }
  Assumptions& assumptions = assumed.assumptions;
  if (assumptions.is_given(fact_name) && assumptions.facts[fact_name] != *normalised)
    return wrong_value("--assume " + fact_name, "'" + assumptions.facts[fact_name] + "' and '" + *normalised + "'",
                       "one value");
  assumptions.facts[fact_name] = *normalised;
  const auto place = std::lower_bound(assumptions.given.begin(), assumptions.given.end(), fact_name);
  if (place == assumptions.given.end() || *place != fact_name) assumptions.given.insert(place, fact_name);
  return {};
}

// Names in the disabling fact that no kernel has: the engine ignores them, and so they are told.
void note_unknown_disabled(const Registry& registry, Assumed& assumed) {
  const std::string_view fact = registry.rules.disabling_fact;
  if (fact.empty()) return;
  for (const std::string& kernel : split(assumed.assumptions.fact(fact), ',')) {
    if (!kernel.empty() && registry.find_kernel(kernel, Platform::cpu) == nullptr)
      assumed.unused.push_back(std::string(fact) + "=" + printable(kernel));
  }
}

}  // namespace

Result<Assumed> assumed_by(const Policy& policy, const Registry& registry, const DeviceProfile& device) {
  Assumed assumed;
  for (const Fact& fact : registry.facts) {
    const bool set = std::any_of(fact.set_on.begin(), fact.set_on.end(),
                                 [&](std::string_view pattern) { return glob_match(pattern, device.name); });
    assumed.assumptions.facts[std::string(fact.name)] = set ? "1" : std::string(fact.value);
  }
  if (const std::string_view fact = registry.rules.batch_invariant_fact; policy.batch_invariant && !fact.empty())
    assumed.assumptions.facts[std::string(fact)] = "1";
  for (const auto& statement : policy.assume) GEARSHIFT_CHECK(state(statement, registry, assumed));

  const Registry& dictionary = dictionary_of(registry);
  const std::vector<std::string> with = policy.with.value_or(std::vector<std::string>{});
  GEARSHIFT_CHECK(check_packages(with, "--with", dictionary));
  GEARSHIFT_CHECK(check_packages(policy.without, "--without", dictionary));
  if (&dictionary != &registry) {
    for (const std::string& package : with) assumed.unused.push_back("--with " + package);
    for (const std::string& package : policy.without) assumed.unused.push_back("--without " + package);
    return assumed;
  }
  Packages packages;
  if (policy.with)
    for (const std::string& package : with) add_package(registry, package, packages);
  else
    packages = installed_by_default(registry, device.platform);
  for (const std::string& package : policy.without)
    for (auto it = packages.begin(); it != packages.end();) it = is_part_of(*it, package) ? packages.erase(it) : ++it;
  assumed.assumptions.packages.assign(packages.begin(), packages.end());
  note_unknown_disabled(registry, assumed);
  return assumed;
}

}  // namespace gearshift
