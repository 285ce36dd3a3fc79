// Looking up and adding quarantine rows.
#pragma once

#include "gearshift/store.h"

namespace gearshift {

// Rows about this kernel at this version, whatever its tactic, for this layer class and activation dtype. A row that
// names no batch size (m_max below m_min) concerns nothing and is left out. Pointers into `store`.
std::vector<const Quarantine*> quarantines_of(const Store& store, std::string_view kernel, int version,
                                              std::string_view layer_class, std::string_view dtype);

}  // namespace gearshift
