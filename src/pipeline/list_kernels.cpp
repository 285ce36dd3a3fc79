#include <fmt/format.h>

#include <set>

#include "gearshift/pipeline.h"

namespace gearshift {

namespace {

std::string why_not(const Kernel& kernel, const DeviceProfile& host) {
  if (kernel.platform != host.platform)
    return fmt::format("runs on {}; this machine was looked at as {}", name(kernel.platform), name(host.platform));
  if (!isa_covers(host.isa, kernel.contract.isa)) {
    return fmt::format("needs {}; this CPU has {}", name(kernel.contract.isa), name(host.isa));
  }
  return "";
}

}  // namespace

std::vector<KernelRow> list_kernels(const DeviceProfile& host) {
  std::vector<KernelRow> rows;
  std::set<const Kernel*> seen;
  for (const KernelList& list : builtin_registry().lists) {
    for (const ListEntry& entry : list.entries) {
      if (!seen.insert(entry.kernel).second) continue;
      KernelRow row{entry.kernel, entry.m_min, entry.m_max, false, why_not(*entry.kernel, host)};
      row.runnable = row.reason.empty();
      if (row.runnable) row.reason = entry.why;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace gearshift
