#include "host.h"
#include "output.h"
#include "report/documents.h"
#include "report/texts.h"

namespace gearshift::cli {

int kernels(const Call& call) {
  const Result<DeviceProfile> host = host_of(call);
  if (!host.ok()) return fail(host.error());
  const std::vector<KernelRow> rows = list_kernels(*host);
  return print_result(
      call, [&] { return kernels_json(rows); }, [&](size_t width) { return kernels_text(rows, width); });
}

}  // namespace gearshift::cli
