#include "report/quantities.h"
#include "report/table.h"
#include "report/texts.h"

namespace gearshift {

std::string kernels_text(const std::vector<KernelRow>& rows, size_t width) {
  using Kind = Table::Kind;
  Table table({{"kernel", Kind::name},
               {"backend", Kind::word},
               {"platform", Kind::word},
               {"batch", Kind::word},
               {"here", Kind::word},
               {"families; why", Kind::sentence}});
  for (const KernelRow& row : rows) {
    const Kernel& kernel = *row.kernel;
    std::string families;
    for (Family family : kernel.families) families += (families.empty() ? "" : ", ") + std::string(name(family));
    if (!row.reason.empty()) families += "; " + row.reason;
    table.row({std::string(kernel.name), std::string(kernel.backend), std::string(name(kernel.platform)),
               range_text(row.m_min, row.m_max), row.runnable ? "yes" : "no", families});
  }
  return table.render(width);
}

}  // namespace gearshift
