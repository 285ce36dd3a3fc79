#include "report/documents.h"
#include "report/json_writer.h"

namespace gearshift {

std::string devices_json(const std::vector<DeviceProfile>& devices) {
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.devices/1").key("devices").begin_array();
  for (const DeviceProfile& device : devices) {
    json.begin_object(JsonWriter::Line::single).member("name", device.name).member("platform", name(device.platform));
    json.member("arch", device.arch).member("present", device.present).list("aliases", device.aliases);
    json.member("cores", device.cores).member("memory_bytes", device.memory_bytes).end();
  }
  json.end().end();
  return json.take();
}

}  // namespace gearshift
