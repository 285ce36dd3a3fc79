#include "base/text.h"
#include "report/table.h"
#include "report/texts.h"

namespace gearshift {

std::string devices_text(const std::vector<DeviceProfile>& devices, size_t width) {
  using Kind = Table::Kind;
  Table table({{"name", Kind::name},
               {"platform", Kind::word},
               {"arch", Kind::word},
               {"here", Kind::word},
               {"cores", Kind::number},
               {"memory", Kind::number},
               {"also called", Kind::sentence}});
  for (const DeviceProfile& device : devices) {
    table.row({device.name, std::string(name(device.platform)), device.arch, device.present ? "yes" : "no",
               device.cores > 0 ? std::to_string(device.cores) : "",
               device.memory_bytes > 0 ? format_bytes(device.memory_bytes) : "", join(device.aliases, ", ")});
  }
  return table.render(width);
}

}  // namespace gearshift
