#include "host.h"
#include "output.h"
#include "report/documents.h"
#include "report/texts.h"

namespace gearshift::cli {

int devices(const Call& call) {
  const Result<DeviceProfile> host = host_of(call);
  if (!host.ok()) return fail(host.error());
  const std::vector<DeviceProfile> known = known_devices(*host);
  return print_result(
      call, [&] { return devices_json(known); }, [&](size_t width) { return devices_text(known, width); });
}

}  // namespace gearshift::cli
