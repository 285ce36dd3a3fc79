#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/try.h"
#include "pipeline/options.h"
#include "pipeline/registries.h"

namespace gearshift {

namespace {

std::string why_not_on_cuda(const Kernel& kernel) {
  const std::vector<std::string_view>& targets = kernel.contract.targets;
  if (targets == std::vector<std::string_view>{"none"})
    return "this build has no CUDA code: install the CUDA toolkit (12.8 or newer), configure again and rebuild";
  const std::vector<DeviceProfile> devices = cuda_devices();
  if (devices.empty()) return "needs a CUDA device; this machine has none that this build can use";
  for (const DeviceProfile& device : devices) {
    const auto& archs = kernel.contract.archs;
    if (std::find(archs.begin(), archs.end(), device.arch) != archs.end() &&
        std::any_of(targets.begin(), targets.end(), [&](std::string_view t) { return target_covers(t, device.arch); }))
      return "";
  }
  return fmt::format("this build has code for {}; the device is {}", fmt::join(targets, " "), devices.front().arch);
}

std::string why_not(const Kernel& kernel, const DeviceProfile& host) {
  if (kernel.layout == &engine_layout) return "is planned with only: nothing of this registry runs here";
  if (kernel.platform == Platform::cuda) return why_not_on_cuda(kernel);
  if (kernel.platform != host.platform)
    return fmt::format("runs on {}; this machine was looked at as {}", name(kernel.platform), name(host.platform));
  if (!isa_covers(host.isa, kernel.contract.isa)) {
    return fmt::format("needs {}; this CPU has {}", name(kernel.contract.isa), name(host.isa));
  }
  return "";
}

std::vector<KernelRow> rows_of(const Registry& registry, const DeviceProfile& host) {
  std::vector<KernelRow> rows;
  std::set<const Kernel*> seen;
  for (const KernelList& list : registry.lists) {
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

}  // namespace

std::vector<KernelRow> list_kernels(const DeviceProfile& host) { return rows_of(builtin_registry(), host); }

Result<KernelListing> list_kernels(const DeviceProfile& host, const Options& options) {
  GEARSHIFT_TRY(const Settings settings, read_settings(options));
  KernelListing listing;
  GEARSHIFT_TRY(listing.registry, open_registry(settings.registry));
  listing.rows = rows_of(listing.registry, host);
  return listing;
}

}  // namespace gearshift
