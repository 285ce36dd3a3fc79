// Contracts and conditions of a registry file.
#pragma once

#include "kernel/data/fields.h"

namespace gearshift::data {

// What a file declares before its kernels speak of it.
struct Declared {
  std::vector<std::string_view> packages;
  std::vector<Fact> facts;

  const Fact* fact(std::string_view name) const;
};

// Reads the fields of a condition out of `json` (an object).
Condition read_condition(const Json& json, const std::string& place, const Declared& declared, Reading& reading);
Contract read_contract(const Json& json, const std::string& place, const Declared& declared, Reading& reading);

std::span<const Platform> all_platforms();
std::span<const LayerKind> all_kinds();

}  // namespace gearshift::data
