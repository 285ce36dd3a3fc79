#include <fmt/format.h>

#include "base/text.h"
#include "report/table.h"
#include "report/text_parts.h"
#include "report/texts.h"

namespace gearshift {

namespace {

std::string published(double value) {
  if (value <= 0) return "";
  return value < 1000 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
}

}  // namespace

std::string devices_text(const std::vector<DeviceProfile>& devices, size_t width) {
  using Kind = Table::Kind;
  Table names({{"name", Kind::name},
               {"platform", Kind::word},
               {"arch", Kind::word},
               {"here", Kind::word},
               {"also called", Kind::sentence}});
  Table figures({{"name", Kind::name},
                 {"cores", Kind::number},
                 {"memory", Kind::number},
                 {"GB/s", Kind::number},
                 {"fp16", Kind::number},
                 {"bf16", Kind::number},
                 {"fp8", Kind::number},
                 {"int8", Kind::number},
                 {"fp4", Kind::number}});
  for (const DeviceProfile& device : devices) {
    names.row({device.name, std::string(name(device.platform)), device.arch, device.present ? "yes" : "no",
               join(device.aliases, ", ")});
    if (device.cores == 0) continue;
    const PeakRates& peak = device.peak;
    figures.row({device.name, std::to_string(device.cores),
                 device.memory_bytes > 0 ? format_bytes(device.memory_bytes) : "", published(device.read_gbytes_per_s),
                 published(peak.fp16), published(peak.bf16), published(peak.fp8), published(peak.int8),
                 published(peak.fp4)});
  }
  const std::string heading =
      wrapped_paragraph("", "figures as published (sources: --json), rates in 10^12 dense operations a second", width);
  return names.render(width) + "\n" + heading + figures.render(width);
}

}  // namespace gearshift
