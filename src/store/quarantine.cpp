#include "store/quarantine.h"

namespace gearshift {

std::vector<const Quarantine*> quarantines_of(const Store& store, std::string_view kernel, int version,
                                              std::string_view layer_class, std::string_view dtype) {
  std::vector<const Quarantine*> rows;
  for (const Quarantine& row : store.quarantines) {
    const bool some_batch = row.m_max == 0 || (row.m_max >= 1 && row.m_max >= row.m_min);
    if (some_batch && row.tactic.empty() && row.kernel == kernel && row.kernel_version == version &&
        row.layer_class == layer_class && row.dtype == dtype)
      rows.push_back(&row);
  }
  return rows;
}

}  // namespace gearshift
