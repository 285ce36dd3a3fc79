#include "host.h"
#include "output.h"
#include "report/documents.h"
#include "report/texts.h"

namespace gearshift::cli {

namespace {

// Devices that lists are asked about: all that are known, and this machine's CPU.
int lint(const Call& call, const Registry& registry, const DeviceProfile& host) {
  const std::vector<LintFinding> findings = lint_registry(registry, known_devices(host));
  return print_result(
      call, [&] { return lint_json(registry, findings); },
      [&](size_t width) { return lint_text(registry, findings, width); },
      findings.empty() ? 0 : exit_code(ErrorCode::runtime));
}

}  // namespace

int kernels(const Call& call) {
  const Result<DeviceProfile> host = host_of(call);
  if (!host.ok()) return fail(host.error());
  const Result<KernelListing> listing = list_kernels(*host, call.options);
  if (!listing.ok()) return fail(listing.error());
  if (is_set(call, "lint")) return lint(call, listing->registry, *host);
  const auto json = [&] { return kernels_json(listing->rows); };
  if (is_set(call, "markdown"))
    return print_result(call, json, [&](size_t) { return kernels_markdown(listing->registry); });
  return print_result(call, json, [&](size_t width) { return kernels_text(listing->rows, width); });
}

}  // namespace gearshift::cli
