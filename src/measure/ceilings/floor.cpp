#include "measure/ceilings/floor.h"

namespace gearshift {

namespace {

const Ceiling* ceiling_named(const std::vector<Ceiling>& ceilings, std::string_view name) {
  for (const Ceiling& ceiling : ceilings) {
    if (ceiling.name == name) return &ceiling;
  }
  return nullptr;
}
double value_of(const Ceiling* ceiling) { return ceiling == nullptr ? 0 : ceiling->value; }

}  // namespace

std::string_view peak_of(std::string_view activation) {
  if (activation == "int8" || activation == "nvfp4" || activation == "mxfp4") return "int8";
  return activation == "fp16" || activation == "fp32" ? "fp32" : "bf16";
}

Floor floor_of(const std::vector<Ceiling>& ceilings, const LayerSpec& layer, std::string_view activation, int64_t m) {
  // Only ceilings of a device say what starting a read costs. Its caches are small beside 16-bit x and y: they count.
  const double start_us = value_of(ceiling_named(ceilings, "read start"));
  const bool on_device = start_us > 0;
  const Ceiling* peak = ceiling_named(ceilings, on_device ? activation : peak_of(activation));
  if (on_device && peak == nullptr) peak = ceiling_named(ceilings, device_peak);
  const double read = value_of(ceiling_named(ceilings, "dram"));
  if (read <= 0 || value_of(peak) <= 0) return {};
  const double outputs = static_cast<double>(m) * static_cast<double>(layer.n);
  double bytes = static_cast<double>(layer.weight_bytes);
  if (on_device) bytes += 2 * (outputs + static_cast<double>(m) * static_cast<double>(layer.k));
  const double reading = start_us + bytes / read / 1e3;
  const double computing = 2.0 * outputs * static_cast<double>(layer.k) / peak->value / 1e3;
  return reading >= computing ? Floor{reading, "dram"} : Floor{computing, peak->name};
}

}  // namespace gearshift
