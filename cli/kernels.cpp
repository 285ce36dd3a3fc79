#include "host.h"
#include "output.h"
#include "report/documents.h"
#include "report/texts.h"

namespace gearshift::cli {

int kernels(const Call& call) {
  const Result<DeviceProfile> host = host_of(call);
  if (!host.ok()) return fail(host.error());
  const Result<KernelListing> listing = list_kernels(*host, call.options);
  if (!listing.ok()) return fail(listing.error());
  return print_result(
      call, [&] { return kernels_json(listing->rows); },
      [&](size_t width) { return kernels_text(listing->rows, width); });
}

}  // namespace gearshift::cli
