#include "measure/ceilings/floor.h"

namespace gearshift {

namespace {

double value_of(const std::vector<Ceiling>& ceilings, std::string_view name) {
  for (const Ceiling& ceiling : ceilings) {
    if (ceiling.name == name) return ceiling.value;
  }
  return 0;
}

}  // namespace

std::string_view peak_of(std::string_view activation) {
  if (activation == "int8" || activation == "nvfp4" || activation == "mxfp4") return "int8";
  return activation == "fp16" || activation == "fp32" ? "fp32" : "bf16";
}

Floor floor_of(const std::vector<Ceiling>& ceilings, const LayerSpec& layer, std::string_view activation, int64_t m) {
  const double read = value_of(ceilings, "dram"), peak = value_of(ceilings, peak_of(activation));
  if (read <= 0 || peak <= 0) return {};
  const double operations = 2.0 * static_cast<double>(m) * static_cast<double>(layer.n) * static_cast<double>(layer.k);
  const double reading = static_cast<double>(layer.weight_bytes) / read, computing = operations / peak;
  return reading >= computing ? Floor{reading / 1e3, "dram"} : Floor{computing / 1e3, peak_of(activation)};
}

}  // namespace gearshift
