#include "report/documents.h"
#include "report/json_writer.h"

namespace gearshift {

namespace {

template <class T>
void number_or_null(JsonWriter& json, std::string_view key, T number) {
  json.key(key);
  number > 0 ? json.value(number) : json.null();
}

}  // namespace

std::string devices_json(const std::vector<DeviceProfile>& devices) {
  JsonWriter json;
  json.begin_object().member("schema", "gearshift.devices/1").key("devices").begin_array();
  for (const DeviceProfile& device : devices) {
    json.begin_object(JsonWriter::Line::single).member("name", device.name).member("platform", name(device.platform));
    json.member("arch", device.arch).member("present", device.present).list("aliases", device.aliases);
    number_or_null(json, "capability", device.capability);
    number_or_null(json, "cores", device.cores);
    number_or_null(json, "memory_bytes", device.memory_bytes);
    number_or_null(json, "read_gbytes_per_s", device.read_gbytes_per_s);
    json.key("peak_tflops").begin_object(JsonWriter::Line::single);
    number_or_null(json, "fp16", device.peak.fp16);
    number_or_null(json, "bf16", device.peak.bf16);
    number_or_null(json, "fp8", device.peak.fp8);
    number_or_null(json, "int8", device.peak.int8);
    number_or_null(json, "fp4", device.peak.fp4);
    json.end().member_or_null("figures_from", device.figures_from).end();
  }
  json.end().end();
  return json.take();
}

}  // namespace gearshift
