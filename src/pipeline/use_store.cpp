#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "gearshift/pipeline.h"
#include "kernel/plugin.h"
#include "pipeline/environment.h"
#include "pipeline/options.h"

namespace gearshift {

namespace {

ErrorInfo store_usage(std::string found, std::string wanted) {
  return {ErrorCode::usage, "store", std::move(found), std::move(wanted), "see `gearshift store --help`", {}};
}

// The version of a kernel in this build; 0 where it has none of that name.
int version_here(const Registry& registry, const std::string& kernel) {
  for (const KernelList& list : registry.lists) {
    for (const ListEntry& entry : list.entries) {
      if (entry.kernel->name == kernel) return entry.kernel->version;
    }
  }
  return 0;
}

// Rows that can never apply again: of an older version of a kernel that is here. With a name: all rows of that kernel.
std::vector<StoreEntry> useless_rows(std::vector<StoreEntry> rows, const Registry& registry,
                                     const std::string& kernel) {
  const auto useful = [&](const StoreEntry& row) {
    if (!kernel.empty()) return row.kernel != kernel;
    return row.kernel_version >= version_here(registry, row.kernel);
  };
  rows.erase(std::remove_if(rows.begin(), rows.end(), useful), rows.end());
  return rows;
}

}  // namespace

Result<StoreReport> use_store(const std::vector<std::string>& words, const Options& options) {
  GEARSHIFT_TRY(const Settings settings, read_settings(options));
  GEARSHIFT_TRY(const DeviceProfile host, host_cpu(settings.max_isa));
  GEARSHIFT_TRY(const DeviceProfile device, find_device(settings.device, host));
  StoreReport report;
  report.action = words.empty() ? "list" : words[0];
  report.path = settings.store;
  const std::string file = words.size() > 1 ? words[1] : "";
  StoreFile store(settings.store);
  if (report.action == "list" || report.action == "verify") {
    if (!file.empty())
      return store_usage(fmt::format("the extra word '{}'", printable(file)), report.action + " alone");
    report.check = store.check(environment_of(device));
    if (report.action == "list") report.rows = store.entries();
  } else if (report.action == "export" || report.action == "import" || report.action == "merge") {
    if (file.empty())
      return store_usage(report.action + " alone", report.action == "merge" ? "merge STORE" : report.action + " FILE");
    GEARSHIFT_TRY(report.changed, report.action == "export"   ? store.export_to(file)
                                  : report.action == "import" ? store.import_from(file)
                                                              : store.merge_from(file));
    if (report.action != "export") report.check = store.check(environment_of(device));
  } else if (report.action == "prune") {
    GEARSHIFT_TRY(const Registry registry, with_plugins(builtin_registry(), settings.plugins));
    GEARSHIFT_TRY(report.changed, store.prune(useless_rows(store.entries(), registry, file)));
  } else {
    return store_usage(fmt::format("'{}'", printable(report.action)),
                       "list, verify, export FILE, import FILE, merge STORE or prune [KERNEL]");
  }
  report.notes = store.warnings();
  return report;
}

}  // namespace gearshift
